// Formulas as JSON on standard input -> HTML with MathML as JSON on standard output.
// A formula that KaTeX does not understand ends the build.
const katex = require("katex");

let text = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (part) => { text += part; });
process.stdin.on("end", () => {
  const set = ({ formula, display }) => katex.renderToString(formula, {
    displayMode: display, throwOnError: true, strict: "ignore",
  });
  process.stdout.write(JSON.stringify(JSON.parse(text).map(set)));
});

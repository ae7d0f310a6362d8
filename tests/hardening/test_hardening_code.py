"""Loading reads data; it never runs what a file brings along."""

import ast
import json
import pathlib
import shutil

import pytest

from largeprompt.errors import ModelNotFoundError
from largeprompt.hf.models import load_model

SOURCE = pathlib.Path(__file__).parents[2] / "src" / "largeprompt"
TREES = {path: ast.parse(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")}
RUNS_CODE = {"pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib"}


def calls(tree: ast.AST, name: str) -> list[ast.Call]:
    """The calls of a name, as in `eval(...)`, or of a method, `torch.load(...)`."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == name
    ]


def faults(tree: ast.AST) -> list[str]:
    """What in a file could run code that a file of data brings along."""
    found = [
        name
        for name in ("eval", "exec", "compile", "torch.load", "np.load")
        if calls(tree, name)
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names]
            module = getattr(node, "module", None)
            if names != ["UnpicklingError"]:  # an error may be caught by its name
                found += sorted(RUNS_CODE & {*names, *([module] if module else [])})
        if isinstance(node, ast.keyword) and node.arg == "trust_remote_code":
            found.append("trust_remote_code")
        if isinstance(node, ast.Constant) and node.value == "trust_remote_code":
            found.append("trust_remote_code")
    return found


@pytest.mark.parametrize("path", TREES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_file_of_the_library_can_run_code_from_data(path):
    assert faults(TREES[path]) == []


def test_the_check_sees_what_runs_code():
    planted = (
        "import pickle\nfrom cloudpickle import loads\neval('1')\n"
        "torch.load(path)\nAutoModel.from_pretrained(x, trust_remote_code=True)\n"
    )
    assert sorted(faults(ast.parse(planted))) == [
        "cloudpickle",
        "eval",
        "pickle",
        "torch.load",
        "trust_remote_code",
    ]


@pytest.fixture
def hostile(tiny_folder, tmp_path):
    """A model folder that brings code along; running it leaves a mark."""
    folder, mark = tmp_path / "model", tmp_path / "mark"
    shutil.copytree(tiny_folder / "model", folder)
    (folder / "modeling.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    return folder, mark


def test_code_that_a_model_brings_is_not_run(hostile):
    folder, mark = hostile
    config = json.loads((folder / "config.json").read_text())
    config["model_type"] = "of-its-own"
    config["auto_map"] = {
        "AutoConfig": "modeling.Config",
        "AutoModelForCausalLM": "modeling.Model",
    }
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelNotFoundError, match="contains custom code"):
        load_model(str(folder))
    assert not mark.exists()


def test_a_pickle_among_the_weights_is_not_run(hostile):
    folder, mark = hostile
    (folder / "model.safetensors").unlink()
    call = f"cbuiltins\nopen\n(V{mark}\nVw\ntR."  # what unpickling would call
    (folder / "pytorch_model.bin").write_bytes(call.encode())
    with pytest.raises(ModelNotFoundError, match="would run code"):
        load_model(str(folder))
    assert not mark.exists()

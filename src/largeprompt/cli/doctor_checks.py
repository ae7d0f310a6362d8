"""The devices and models of this machine, and numbers that are known."""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import NamedTuple

import torch

from largeprompt.attention import Head, attend
from largeprompt.compress.compact import Atoms, Compact
from largeprompt.errors import ModelNotFoundError
from largeprompt.kernels import fastest
from largeprompt.laws import gaussian_law
from largeprompt.measures import Gaussian, Prompt

KNOWN = {  # n and logit variance: phi and psi, by an independent computation
    (2, 1.0): (0.636838153969, 1.0728294599),
    (4096, 9.0): (0.0786242416569, 0.194545203550),
    (1e12, 25.0): (0.00133249993768, 0.00962012039743),
}
GIBI = 2**30


class Finding(NamedTuple):
    """Whether a number came out right, and what is told of it."""

    right: bool
    told: str


def devices() -> Iterator[str]:
    """Yield a line for the processor and one for each CUDA device."""
    yield f"cpu: {os.cpu_count()} cores, {torch.get_num_threads()} threads"
    for number in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(number)
        yield f"cuda:{number}: {found.name}, {found.total_memory / GIBI:.0f} GiB"


def models() -> Iterator[str]:
    """Yield a line for each model that comes as a wheel, here or not."""
    if find_spec("transformers") is None:
        yield "none can be read without the extra hf"
        return
    from largeprompt.hf.embedded import (
        EMBEDDED,
        FOLDERS,
        embedded_folder,
        embedded_parts,
    )

    for name in (*EMBEDDED, *FOLDERS):
        try:
            if name in EMBEDDED:
                embedded_parts(name)
            else:
                embedded_folder(name)
        except ModelNotFoundError as error:
            yield f"{name}: {error}"
        else:
            yield f"{name}: here"


def exact_law() -> Finding:
    """Compare the law with known digits, from 2 tokens to 10^12.

    Source: derived in docs/theory.md, section 2.
    """
    error = 0.0
    for arguments, known in KNOWN.items():
        law = gaussian_law(*arguments)
        for found, digits in zip(
            (law.inverse_ess, law.parallel_mse), known, strict=True
        ):
            error = max(error, abs(float(found) / digits - 1))
    return Finding(error < 1e-9, f"relative error {error:.0e}")


def definition() -> Finding:
    """Compare attention to two tokens with the logistic function."""
    query = torch.tensor([[0.7]], dtype=torch.float64)
    keys, values = torch.tensor([[1.0], [0.0]]), torch.tensor([[1.0], [0.0]])
    found = float(attend(query, keys, values, scale=1.0))
    error = abs(found - 1 / (1 + math.exp(-0.7)))
    return Finding(error < 1e-15, f"off by {error:.0e}")


def limit() -> Finding:
    """Compare a prompt's output with its linear limit and the error the law foretells.

    Five times that error is exceeded in no run: the draw is the same every time.
    """
    eye, query = torch.eye(8).double(), torch.full((8,), 0.35).double()
    head = Head(key=eye, query=eye, value=eye, scale=1.0)
    population = Gaussian(mean=torch.zeros(8).double(), cov=eye)
    prompt = Prompt(population.sample(4096, torch.Generator().manual_seed(0)))
    error = float(
        (head.output(prompt, query) - head.linear_limit(population)(query)).norm()
    )
    variance = float(query @ query)
    law = gaussian_law(n=4096, logit_variance=variance)
    expected = float(law.mean_square_error(response=variance, variance=8.0)) ** 0.5
    told = f"error {error:.4f} at 4,096 tokens, {expected:.4f} expected"
    return Finding(error < 5 * expected, told)


def kernel() -> Finding:
    """Compare the fastest kernel for the processor with the definition.

    Its sums are in float32: 1,000 times the precision is exceeded by none that is
    right.
    """
    draw = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(1, n, 64, generator=draw) for n in (4, 300, 300))
    atoms = Atoms(key[0], value[0], torch.tensor([0, 300]))
    fast = fastest(torch.device("cpu"))
    found = fast.decode(query / 8, Compact(atoms, None)).output
    error = float((found - attend(query, key, value, scale=1 / 8)).abs().max())
    right = error < 1000 * torch.finfo(torch.float32).eps
    return Finding(right, f"{type(fast).__name__} off by {error:.0e}")


CHECKS: Mapping[str, Callable[[], Finding]] = MappingProxyType(
    {
        "exact law": exact_law,
        "definition": definition,
        "linear limit": limit,
        "kernel": kernel,
    }
)

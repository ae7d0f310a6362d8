"""Decoding by numba and by torch, against the definition in float64."""

import dataclasses

import numba
import pytest
import torch

from largeprompt import kernels
from largeprompt.compress.indexed import Indexed
from largeprompt.errors import MissingKernelError
from largeprompt.kernels import ReferenceKernel, choice, fastest, numba_kernel
from largeprompt.kernels.numba_arithmetic import compiled
from largeprompt.kernels.numba_decoding import NumbaKernel
from tests.kernels import layers, naive

KERNELS = [ReferenceKernel(), numba_kernel()]
NAMES = [type(kernel).__name__ for kernel in KERNELS]


def logit_sum(tilt: torch.Tensor) -> float:
    """A bound of sum |u_j k_j| over every key and direction of the layers here."""
    return float(tilt.abs().sum(-1).max()) * 6 + float(tilt[..., 0].abs().max()) * 30


def atoms_of(layer) -> list:
    return [layer.atoms.of(head) for head in range(layers.HEADS)]


def opened_tokens(indexed: Indexed, opened: torch.Tensor) -> list:
    tokens = []
    for head, edges in enumerate(indexed.starts.tolist()):
        rows = list(range(edges[0]))
        for c, flag in enumerate(opened[head].tolist()):
            rows += range(edges[c], edges[c + 1]) if flag else []
        tokens.append((indexed.key[head, rows], indexed.value[head, rows]))
    return tokens


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
@pytest.mark.parametrize("dtype", layers.DTYPES)
@pytest.mark.parametrize("shape", layers.SHAPES)
def test_a_compact_step_equals_the_float64_definition(kernel, dtype, shape):
    tilt, tail = layers.tilts(shape), layers.tail(shape, dtype)
    for sets in (None, layers.random_sets(shape, 5, 3)):
        layer = layers.compact(shape, dtype, sets)
        for later in (None, tail):
            exact = naive.decode(tilt, atoms_of(layer), sets, None, later)
            answer = kernel.decode(tilt, layer, later)
            assert naive.agrees(answer, exact, logit_sum(tilt), shape[1])


@pytest.mark.parametrize("shape", layers.SHAPES)
def test_numba_reads_responses_in_either_memory_order(shape):
    sets = layers.random_sets(shape, 4, shape[1])
    layer = layers.compact(shape, torch.float32, sets)
    turned = dataclasses.replace(sets, responses=sets.responses.mT.contiguous().mT)
    other = dataclasses.replace(layer, sets=turned)
    tilt = layers.tilts(shape)
    exact = naive.decode(tilt, atoms_of(layer), sets, None, None)
    for one in (layer, other):
        answer = NumbaKernel().decode(tilt, one)
        assert naive.agrees(answer, exact, logit_sum(tilt), shape[1])


@pytest.mark.parametrize("dtype", layers.DTYPES)
@pytest.mark.parametrize("shape", layers.SHAPES)
def test_an_indexed_step_equals_the_float64_definition(dtype, shape):
    tilt, later = layers.tilts(shape), layers.tail(shape, dtype)
    indexed = layers.indexed(shape, dtype)
    answer, opened = NumbaKernel().decode_and_show(tilt, indexed, layers.KEYS, later)
    tokens = opened_tokens(indexed, opened)
    exact = naive.decode(tilt, tokens, indexed.sets, ~opened, later)
    assert opened.any()
    assert all(len(key) <= layers.KEYS for key, _ in tokens)
    assert naive.agrees(answer, exact, logit_sum(tilt), shape[1])
    reference = ReferenceKernel().decode_indexed(tilt, indexed, layers.KEYS, later)
    assert naive.agrees(reference, exact, logit_sum(tilt), shape[1])


def test_reading_all_keys_of_an_index_is_attention_over_the_prompt():
    shape = (3, 24, 20)
    indexed, tilt = layers.indexed(shape, torch.float32), layers.tilts(shape)
    everything = torch.ones_like(indexed.sizes, dtype=torch.bool)
    tokens = opened_tokens(indexed, everything)
    exact = naive.decode(tilt, tokens, None, None, None)
    answer = NumbaKernel().decode_indexed(tilt, indexed, layers.TOKENS)
    assert naive.agrees(answer, exact, logit_sum(tilt), shape[1])


@pytest.mark.parametrize("shape", layers.SHAPES)
def test_the_check_refuses_an_answer_without_one_set_or_the_tails_last_token(shape):
    tilt, later = layers.tilts(shape), layers.tail(shape, torch.float32)
    sets = layers.random_sets(shape, 5, 3)
    layer = layers.compact(shape, torch.float32, sets)
    exact = naive.decode(tilt, atoms_of(layer), sets, None, later)
    shorter = dataclasses.replace(later, lengths=(later.lengths - 1).clamp_min(0))
    base = sets.base.clone()
    base[:, :, 2] = -torch.inf
    fewer = dataclasses.replace(layer, sets=dataclasses.replace(sets, base=base))
    for faulty, tail in ((layer, shorter), (fewer, later)):
        answer = NumbaKernel().decode(tilt, faulty, tail)
        assert not naive.agrees(answer, exact, logit_sum(tilt), shape[1])


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_a_head_that_holds_nothing_answers_no_mass_and_zero(kernel):
    shape = (3, 24, 20)
    answer = kernel.decode(
        layers.tilts(shape), layers.compact(shape, torch.float32, None)
    )
    assert answer.log_mass[1].isneginf().all()
    assert (answer.output[1] == 0).all()
    indexed = layers.indexed(shape, torch.float32)
    answer = kernel.decode_indexed(layers.tilts(shape), indexed, layers.KEYS)
    assert answer.log_mass[1].isneginf().all()
    assert (answer.output[1] == 0).all()


def test_numba_refuses_keys_in_float64_and_mixed_dtypes():
    shape = (3, 24, 20)
    kernel, tilt = NumbaKernel(), layers.tilts(shape)
    with pytest.raises(ValueError, match=r"float16; got torch\.float64"):
        kernel.decode(tilt, layers.compact(shape, torch.float64, None))
    with pytest.raises(ValueError, match="must share one dtype"):
        kernel.decode(
            tilt,
            layers.compact(shape, torch.float32, None),
            layers.tail(shape, torch.float16),
        )


def test_without_the_fast_packages_the_reference_serves_and_errors_name_them(
    monkeypatch,
):
    assert isinstance(fastest(torch.device("cpu")), NumbaKernel)
    monkeypatch.setattr(choice, "installed", lambda name: False)
    for device in ("cpu", "cuda"):
        assert isinstance(fastest(torch.device(device)), ReferenceKernel)
    with pytest.raises(MissingKernelError, match="pip install"):
        kernels.numba_kernel()
    with pytest.raises(MissingKernelError, match="CUDA"):
        kernels.triton_kernel()


def test_a_kernel_compiles_where_numba_can_cache_nothing():
    source = {}
    exec("def double(x):\n    return 2 * x\n", source)  # a function without a file
    with pytest.raises(RuntimeError, match="no locator"):
        numba.njit(cache=True)(source["double"])
    assert compiled(source["double"])(3) == 6

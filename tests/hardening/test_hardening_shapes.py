"""Arrays of any shape and precision: right answers, or a refusal in words."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from largeprompt.attention import attend
from largeprompt.audit import audit_arrays
from largeprompt.compress.calibrated import CalibratedLimit
from largeprompt.compress.compact import Atoms, Compact
from largeprompt.compress.prompt import LayerPrompt
from largeprompt.kernels import fastest
from largeprompt.measures import Gaussian, Prompt

FLOATS = st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16])
NARROW = st.sampled_from([torch.float32, torch.bfloat16, torch.float16])
OTHERS = st.sampled_from(
    [torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn]
)
ANY = FLOATS | OTHERS
SIZES = st.integers(1, 7)
SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
CPU = fastest(torch.device("cpu"))


def drawn(shape, dtype, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@given(st.lists(st.integers(1, 3), max_size=2), SIZES, SIZES, SIZES, SIZES, FLOATS)
def test_attend_answers_in_float64_for_any_shape(batch, m, n, k, v, dtype):
    query, keys, values = (
        drawn((*batch, *shape), dtype, seed)
        for seed, shape in enumerate([(m, k), (n, k), (n, v)])
    )
    answer = attend(query, keys, values, scale=0.5)
    assert answer.shape == (*batch, m, v)
    assert answer.dtype == torch.float64
    low, high = values.double().amin(-2), values.double().amax(-2)
    slack = 1e-12 * values.double().abs().amax()
    assert (answer >= low.unsqueeze(-2) - slack).all()  # a mean of values
    assert (answer <= high.unsqueeze(-2) + slack).all()


@given(st.lists(st.integers(0, 3), max_size=2), SIZES, SIZES, st.booleans())
def test_measures_answer_batches_of_any_shape_in_their_precision(batch, n, d, double):
    dtype = torch.float64 if double else torch.float32
    atoms, tilts = drawn((n, d), dtype), drawn((*batch, d), dtype, 1)
    for measure in (Prompt(atoms), Gaussian(atoms[0], torch.eye(d, dtype=dtype))):
        assert measure.log_mgf(tilts).shape == tuple(batch)
        assert measure.tilted_mean(tilts).shape == (*batch, d)
        assert measure.tilted_cov(tilts).shape == (*batch, d, d)
        assert measure.tilted_mean(tilts).dtype == dtype
        assert measure.tilted_mean(tilts).isfinite().all()


@pytest.mark.usefixtures("without_shape_checks")
def test_measures_refuse_every_other_shape_and_type():
    @given(SHAPES, ANY)
    @settings(max_examples=100)
    def refuse(shape, dtype):
        array = drawn(shape, dtype)
        fits = len(shape) == 2 and 0 not in shape
        if fits and dtype.is_floating_point and dtype.itemsize > 1:
            Prompt(array)
        else:
            with pytest.raises(ValueError, match="atom"):
                Prompt(array)

    refuse()


@pytest.mark.usefixtures("without_shape_checks")
def test_an_audit_refuses_arrays_that_are_no_layer_of_attention():
    @given(SHAPES, SHAPES, SHAPES, ANY)
    @settings(max_examples=200)
    def refuse(query, key, value, dtype):
        q, k, v = (drawn(shape, dtype) for shape in (query, key, value))
        with pytest.raises(ValueError, match="must"):
            audit_arrays(q, k, v, lengths=[9])  # longer than any array here

    refuse()


@given(SIZES, SIZES, SIZES, SIZES, SIZES, NARROW)
@settings(max_examples=20)
def test_a_kernel_answers_what_attention_does_for_any_shape(b, g, n, k, v, dtype):
    tilt = drawn((b, g, k), torch.float32)
    key, value = drawn((b * n, k), dtype, 1), drawn((b * n, v), dtype, 2)
    compact = Compact(Atoms(key, value, torch.arange(b + 1) * n), None)
    answer = CPU.decode(tilt, compact).output
    exact = attend(tilt, key.view(b, n, k), value.view(b, n, v), scale=1.0)
    size = value.double().abs().amax()
    assert answer.shape == (b, g, v)
    # logits are sums of k products in float32, and move weights by their error
    logits = tilt.double() @ key.view(b, n, k).double().mT
    bound = 8 * (k + n) * torch.finfo(torch.float32).eps * (1 + logits.abs().amax())
    assert (answer - exact).abs().amax() <= bound * size


@given(SIZES, SIZES, st.integers(1, 40), SIZES, SIZES, FLOATS)
@settings(max_examples=20)
def test_compression_within_a_whole_budget_is_exact_for_any_shape(b, g, n, k, v, dtype):
    prompt = LayerPrompt(
        key=drawn((b, n, k), dtype),
        value=drawn((b, n, v), dtype, 1),
        valid=torch.ones(b, n, dtype=torch.bool),
        query=drawn((b, g, min(n, 4), k), dtype, 2),
        scale=k**-0.5,
    )
    compact = CalibratedLimit().compress(prompt, torch.full((b,), float(n)))
    assert torch.equal(compact.atoms.key, prompt.key.flatten(0, 1))
    assert torch.equal(compact.atoms.value, prompt.value.flatten(0, 1))

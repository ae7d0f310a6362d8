import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from largeprompt.audit import audit_arrays
from largeprompt.audit.arrays_file import audit_file
from largeprompt.errors import ArraysError
from tests.audit import naive


def arrays(seed=0, n=60):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(h, n, 5, generator=generator) for h in (6, 2, 2)]


@pytest.fixture
def file(tmp_path):
    tensors = {}
    for layer in (2, 10):
        for name, array in zip("qkv", arrays(layer), strict=True):
            tensors[f"{name}{layer}"] = array
    tensors["scale10"] = torch.tensor(0.7)
    save_file(tensors, tmp_path / "arrays.safetensors")
    return tmp_path / "arrays.safetensors"


def measured(result, layer):
    rows = [row for row in result.heads.to_pylist() if row["layer"] == layer]
    return [{k: v for k, v in r.items() if k not in ("layer", "text")} for r in rows]


def test_a_file_of_layers_is_audited_layer_by_layer(file):
    result = audit_file(file, lengths=[30, 60], queries=9)
    assert set(result.heads["layer"].to_pylist()) == {2, 10}
    for layer, scale in ((2, None), (10, float(torch.tensor(0.7)))):
        alone = audit_arrays(*arrays(layer), lengths=[30, 60], queries=9, scale=scale)
        assert measured(result, layer) == measured(alone, 0)
    some = audit_file(file, lengths=[60], queries=9, layers=[10], heads=[1, 5])
    assert [(r["layer"], r["head"]) for r in some.heads.to_pylist()] == [
        (10, 1),
        (10, 5),
    ]


def test_arrays_that_see_both_ways_are_audited_over_the_whole_text(tmp_path):
    q, k, v = (array.double() for array in arrays())
    result = audit_arrays(q, k, v, lengths=[60], queries=1, causal=False, scale=0.4)
    row = result.heads.to_pylist()[4]
    # the naive statistics of the last token of a causal text, which sees all of it
    theirs = naive.statistics(
        q[4, 30].numpy(), k[1].numpy(), v[1].numpy(), 59, scale=0.4, window=None
    )
    for ours, name in (
        ("logit_variance", "logit_variance"),
        ("entropy", "entropy"),
        ("sink_share", "sink_share"),
    ):
        np.testing.assert_allclose(row[ours], theirs[name], rtol=1e-9)
    np.testing.assert_allclose(row["ess"], 1 / theirs["inverse_ess"], rtol=1e-9)
    size = np.linalg.norm(theirs["output"])
    for ours, name in (
        ("linear_error_in_sample", "in_sample"),
        ("limit_error_held_out", "held_out"),
    ):
        np.testing.assert_allclose(row[ours], theirs[name] ** 0.5 / size, rtol=1e-8)
    assert result.manifest["model"]["architecture"] == "attention both ways"


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        ({"x": torch.zeros(3)}, "must hold q, k and v, or q0, k0, v0"),
        ({"q": torch.zeros(2, 9, 3), "k": torch.zeros(2, 9, 3)}, "has q but no v"),
        (
            dict(zip("qkv", arrays(), strict=True)) | {"scale": torch.zeros(2)},
            "must be one finite number",
        ),
    ],
)
def test_a_file_that_lacks_arrays_is_refused(tmp_path, tensors, reason):
    save_file(tensors, tmp_path / "arrays.safetensors")
    with pytest.raises(ArraysError, match=reason):
        audit_file(tmp_path / "arrays.safetensors", lengths=[8])


def test_a_file_that_cannot_be_read_is_refused(tmp_path, file):
    with pytest.raises(ArraysError, match="cannot read arrays"):
        audit_file(tmp_path / "nothing.safetensors", lengths=[8])
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ArraysError, match="cannot read arrays"):
        audit_file(file, lengths=[8])


def test_layers_and_lengths_that_a_file_lacks_are_refused(file):
    with pytest.raises(
        ValueError, match=r"among those of arrays.safetensors, \[2, 10\]"
    ):
        audit_file(file, lengths=[30], layers=[3])
    with pytest.raises(ValueError, match="at most 60"):
        audit_file(file, lengths=[61])
    with pytest.raises(ValueError, match="heads must be from 0 to 5; got 6"):
        audit_file(file, lengths=[30], heads=[6])


def test_layers_of_other_shapes_are_refused(tmp_path):
    tensors = {
        f"{name}{layer}": array
        for layer, n in ((0, 60), (1, 50))
        for name, array in zip("qkv", arrays(n=n), strict=True)
    }
    save_file(tensors, tmp_path / "arrays.safetensors")
    with pytest.raises(ValueError, match="layers must have the same heads"):
        audit_file(tmp_path / "arrays.safetensors", lengths=[30])

"""Where heads and token laws come from."""

import pytest
import torch
from safetensors.torch import save_file

from largeprompt.attention import Head
from largeprompt.experiments import GivenHead, RandomHeads, TokenLaw, token_law
from largeprompt.testing import close


def zero(dim: int) -> torch.Tensor:
    return torch.zeros(dim, dtype=torch.float64)


@pytest.mark.parametrize("law", list(TokenLaw))
@pytest.mark.parametrize("dim", [1, 5])
def test_every_token_law_is_centred_with_mean_variance_one(law, dim):
    measure = token_law(law, dim)
    assert measure.dim == dim
    close(measure.tilted_mean(zero(dim)), zero(dim))
    variance = measure.tilted_cov(zero(dim)).trace() / dim
    close(variance, torch.ones_like(variance))


def test_condition_of_a_covariance_is_the_one_in_its_name():
    eigenvalues = torch.linalg.eigvalsh(
        token_law(TokenLaw.CONDITION_8, 5).tilted_cov(zero(5))
    )
    assert float(eigenvalues[-1] / eigenvalues[0]) == pytest.approx(8)
    ratios = eigenvalues[1:] / eigenvalues[:-1]
    close(ratios, ratios[0].expand(4))


def test_decaying_covariance_halves_with_every_step():
    cov = token_law(TokenLaw.DECAYING, 4).tilted_cov(zero(4))
    close(cov[0], torch.tensor([1, 0.5, 0.25, 0.125], dtype=torch.float64))


def test_a_token_law_needs_a_dimension():
    with pytest.raises(ValueError, match="dim must be at least 1; got 0"):
        token_law(TokenLaw.CUBE, 0)


def test_random_heads_have_the_norms_asked_for_and_follow_the_generator():
    source = RandomHeads(dim=5, bilinear_norm=0.22, value_norm=0.75)
    head, again = (source.draw(torch.Generator().manual_seed(7)) for _ in range(2))
    other = source.draw(torch.Generator().manual_seed(8))
    norms = [torch.linalg.matrix_norm(m, 2) for m in (head.bilinear_form, head.value)]
    assert [float(norm) for norm in norms] == pytest.approx([0.22, 0.75])
    assert torch.equal(head.value, again.value)
    assert not torch.equal(head.value, other.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1.0, 1.0), "dim must be at least 1; got 0"),
        ((3, 0.0, 1.0), "bilinear_norm must be finite and above 0; got 0.0"),
        ((3, 1.0, float("nan")), "value_norm must be finite and above 0; got nan"),
    ],
)
def test_random_heads_without_a_norm_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        RandomHeads(*arguments)


def tensors() -> dict[str, torch.Tensor]:
    return {
        "key": torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]),
        "query": torch.tensor([[0.5], [1.0]]),
        "value": torch.tensor([[1.0, 0.0, 2.0]]),
        "scale": torch.tensor(0.25),
    }


def test_head_of_a_file_is_the_one_that_was_saved(tmp_path):
    path = tmp_path / "head.safetensors"
    save_file(tensors(), path)
    source = GivenHead.load(path)
    head = source.draw(torch.Generator())
    assert isinstance(head, Head)
    assert head.value.dtype == torch.float64
    close(head.value, tensors()["value"].double())
    expected = torch.tensor([[0.125], [0.5], [-0.25]], dtype=torch.float64)
    close(head.bilinear_form, expected)
    told = source.description()
    assert (told["name"], told["key"], told["scale"]) == (path.name, [2, 3], 0.25)
    assert len(told["sha256"]) == 64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": None}, "must hold key, query, value and scale; got none .* 'scale'"),
        ({"scale": torch.ones(2)}, "scale must be one number; got shape"),
        ({"query": torch.ones(3, 1)}, r"share k and d|Type-check error"),
    ],
)
def test_head_of_a_file_that_holds_none_is_refused(change, message, tmp_path):
    held = {k: v for k, v in (tensors() | change).items() if v is not None}
    save_file(held, tmp_path / "head.safetensors")
    # under test jaxtyping sees a wrong shape first
    with pytest.raises((ValueError, TypeError), match=message):
        GivenHead.load(tmp_path / "head.safetensors")


def test_file_of_another_kind_is_no_head(tmp_path):
    (tmp_path / "head.safetensors").write_text("no tensors here")
    with pytest.raises(ValueError, match="must be a safetensors file"):
        GivenHead.load(tmp_path / "head.safetensors")

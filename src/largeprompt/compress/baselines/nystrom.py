r"""Landmark keys that stand for all the others.

$e^{u \cdot k_j} \approx \sum_l e^{u \cdot \tilde k_l} C_{lj}$: what each landmark key
stands for is fitted on landmark tilts, so that the sums over tokens become sums over
landmarks with fixed weights, which may be negative.
"""

import dataclasses
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from typing_extensions import override

from largeprompt.audit.limits import Answer
from largeprompt.compress.baselines.clusters import means, segments
from largeprompt.compress.baselines.feature_map import FeatureMap, Features
from largeprompt.compress.prompt import LayerPrompt

FLOAT = torch.float32.itemsize


@final
@dataclasses.dataclass(frozen=True)
class Nystrom(FeatureMap):
    """Nyströmformer: landmarks that are means of segments.

    The pseudo-inverse is truncated at `cutoff` of the largest singular value. Tilts
    that were seen are the landmarks on their side; there are no more landmarks of
    either kind than of those.

    Cites:
        [nystromformer:21].
    """

    cutoff: float = 1e-3

    @override
    def width(self, prompt: LayerPrompt, size: float) -> int:
        k, v = prompt.key.shape[-1], prompt.value.shape[-1]
        landmarks = int(size / FLOAT / (k + v + 1))
        return max(1, min(landmarks, prompt.query.shape[1] * prompt.query.shape[2]))

    @override
    def features(
        self,
        key: Float[Tensor, "n k"],
        value: Float[Tensor, "n v"],
        tilt: Float[Tensor, "m k"],
        width: int,
    ) -> Features:
        everywhere = torch.ones(len(key), dtype=torch.bool, device=key.device)
        _, landmarks = means(key, segments(everywhere, width), width)
        seen = torch.ones(len(tilt), dtype=torch.bool, device=key.device)
        _, asked = means(tilt, segments(seen, width), width)
        logits = asked.double() @ key.double().mT
        mass = logits.logsumexp(-1, keepdim=True)
        # each landmark tilt counts alike, whatever its log-mass
        kernel = (asked.double() @ landmarks.double().mT - mass).exp()
        sums = logits.softmax(-1) @ value.double()
        targets = torch.cat([sums, torch.ones_like(mass)], -1)
        fitted = torch.linalg.pinv(kernel, rtol=self.cutoff) @ targets
        return SignedLandmarks(landmarks, fitted.to(key.dtype))


@final
@dataclasses.dataclass(frozen=True, eq=False)
class SignedLandmarks(Features):
    """Landmark keys; the value and, last, the mass that each stands for."""

    key: Float[Tensor, "l k"]
    value: Float[Tensor, "l v+1"]

    @property
    @override
    def nbytes(self) -> int:
        return self.key.nbytes + self.value.nbytes

    @override
    def answer(self, tilt: Float[Tensor, "g m k"]) -> Answer:
        logits = tilt @ self.key.mT
        highest = logits.amax(-1, keepdim=True)
        sums = (logits - highest).exp() @ self.value
        mass = sums[..., -1]
        positive = mass > 0  # signed weights may cancel: then nothing is answered
        safe = torch.where(positive, mass, 1)
        log_mass = torch.where(positive, safe.log() + highest[..., 0], -torch.inf)
        output = torch.where(positive[..., None], sums[..., :-1] / safe[..., None], 0)
        return Answer(log_mass, output)

"""Models that people train, by their published dimensions: what `training-step` takes its messages and its computing from.

Counts leave out what makes no difference to a network: biases, norms and positions, well below 1 % of the parameters. Operations
are those of one sample forward, two for each multiplication and addition; backward takes twice as many.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class KnownModel:
    """A model's layers, taken as equal. `hidden` 0: it is no transformer, and its activations are not told.

    `layer_parameters` has no experts in it, `expert_parameters` is one expert of one layer. `head_parameters` is 0 where the
    embedding is used again behind the last layer. `published` is how many parameters its authors say that it has.
    """

    name: str
    source: str
    published: float
    layers: int
    layer_parameters: int
    layer_operations: float
    hidden: int = 0
    sequence: int = 1
    experts: int = 0
    expert_parameters: int = 0
    experts_per_token: int = 0
    embedding_parameters: int = 0
    head_parameters: int = 0
    head_operations: float = 0.0

    @property
    def parameters(self) -> int:
        """All of them."""
        of_layer = self.layer_parameters + self.experts * self.expert_parameters
        return self.layers * of_layer + self.embedding_parameters + self.head_parameters


def transformer(
    name: str,
    source: str,
    published: float,
    *,
    layers: int,
    hidden: int,
    feed_forward: int,
    sequence: int,
    vocabulary: int,
    keys: int | None = None,
    is_gated: bool = False,
    is_tied: bool = True,
    experts: int = 0,
    experts_per_token: int = 0,
) -> KnownModel:
    """Return a transformer.

    `keys` is the width of keys and of values, default as wide as `hidden`. A feed-forward part has three matrices where it
    `is_gated` (SwiGLU), else two; each expert is such a part. Operations are two for each parameter that a token meets, and
    4 x sequence x hidden for its attention.
    """
    attention = 2 * hidden * hidden + 2 * hidden * (keys or hidden)
    part = (3 if is_gated else 2) * hidden * feed_forward
    met = attention + part * (experts_per_token if experts else 1)
    return KnownModel(
        name=name,
        source=source,
        published=published,
        layers=layers,
        layer_parameters=attention if experts else attention + part,
        layer_operations=float(sequence) * (2 * met + 4 * sequence * hidden),
        hidden=hidden,
        sequence=sequence,
        experts=experts,
        expert_parameters=part if experts else 0,
        experts_per_token=experts_per_token,
        embedding_parameters=vocabulary * hidden,
        head_parameters=0 if is_tied else vocabulary * hidden,
        head_operations=2.0 * sequence * vocabulary * hidden,
    )


KNOWN_MODELS = MappingProxyType(
    {
        one.name: one
        for one in (
            transformer(
                "small",
                "none: small enough for a lab without a scale",
                3.7e6,
                layers=4,
                hidden=256,
                feed_forward=1024,
                sequence=128,
                vocabulary=2000,
            ),
            KnownModel(
                name="resnet-50",
                source="He et al., arXiv 1512.03385, table 1: 3.8e9 multiplications and additions an image",
                published=25.6e6,
                layers=50,
                layer_parameters=511_141,
                layer_operations=2 * 3.8e9 / 50,
            ),
            transformer(
                "bert-large",
                "Devlin et al., arXiv 1810.04805",
                340e6,
                layers=24,
                hidden=1024,
                feed_forward=4096,
                sequence=512,
                vocabulary=30522,
            ),
            transformer(
                "gpt2-xl",
                "Radford et al., Language Models are Unsupervised Multitask Learners, table 2; 1558M in OpenAI's release",
                1558e6,
                layers=48,
                hidden=1600,
                feed_forward=6400,
                sequence=1024,
                vocabulary=50257,
            ),
            transformer(
                "gpt3-175b",
                "Brown et al., arXiv 2005.14165, table 2.1",
                175e9,
                layers=96,
                hidden=12288,
                feed_forward=49152,
                sequence=2048,
                vocabulary=50257,
            ),
            transformer(
                "llama2-7b",
                "Touvron et al., arXiv 2307.09288, and the configuration that was published with it",
                6.74e9,
                layers=32,
                hidden=4096,
                feed_forward=11008,
                sequence=4096,
                vocabulary=32000,
                is_gated=True,
                is_tied=False,
            ),
            transformer(
                "llama2-70b",
                "Touvron et al., arXiv 2307.09288, and the configuration that was published with it",
                69e9,
                layers=80,
                hidden=8192,
                feed_forward=28672,
                sequence=4096,
                vocabulary=32000,
                keys=1024,
                is_gated=True,
                is_tied=False,
            ),
            transformer(
                "mixtral-8x7b",
                "Jiang et al., arXiv 2401.04088, table 1 and section 2; trained with sequences of 32768, here 4096",
                46.7e9,
                layers=32,
                hidden=4096,
                feed_forward=14336,
                sequence=4096,
                vocabulary=32000,
                keys=1024,
                is_gated=True,
                is_tied=False,
                experts=8,
                experts_per_token=2,
            ),
        )
    }
)
"""By the `model` that campaigns name."""

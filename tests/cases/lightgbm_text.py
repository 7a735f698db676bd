"""LightGBM model text written by hand, for forests that no training gives."""

from __future__ import annotations

from dataclasses import dataclass, field

NONE, ZERO, NAN = 0, 1, 2


@dataclass
class Node:
    """One split: ``threshold`` of a number, or ``members``, the set of categories that go left."""

    feature: int
    threshold: float = 0.0
    missing: int = NONE
    default_left: bool = False
    members: tuple[int, ...] | None = None

    @property
    def decision(self) -> int:
        return (self.members is not None) | self.default_left << 1 | self.missing << 2


@dataclass
class Tree:
    """Nodes and children (``c < 0``: leaf ``~c``). ``linear``: for each leaf its constant and (feature, coef) terms."""

    nodes: list[Node]
    left: list[int]
    right: list[int]
    values: list[float]
    linear: list[tuple[float, list[tuple[int, float]]]] | None = None


@dataclass
class Text:
    """A model. ``raw`` header lines come last, before tree_sizes."""

    trees: list[Tree]
    n_features: int
    objective: str | None = "regression"
    per_iteration: int = 1
    version: str = "v4"
    names: list[str] = field(default_factory=list)
    infos: list[str] = field(default_factory=list)
    average: bool = False
    keys: str = "full"

    def text(self) -> str:
        blocks = [f"Tree={i}\n{tree_block(t, self.keys)}\n\n" for i, t in enumerate(self.trees)]
        names = self.names or [f"f{i}" for i in range(self.n_features)]
        infos = self.infos or ["[-1e9:1e9]"] * self.n_features
        head = ["tree", f"version={self.version}", f"num_class={self.per_iteration}"]
        head += [f"num_tree_per_iteration={self.per_iteration}", "label_index=0"]
        head += [f"max_feature_idx={self.n_features - 1}"]
        head += [f"objective={self.objective}"] if self.objective else []
        head += ["average_output"] if self.average else []
        head += [f"feature_names={' '.join(names)}", f"feature_infos={' '.join(infos)}"]
        head += [f"tree_sizes={' '.join(str(len(b)) for b in blocks)}"]
        return (
            "\n".join(head)
            + "\n\n"
            + "".join(blocks)
            + "end of trees\n\nfeature_importances:\n\nparameters:\n"
            + ("end of parameters\n\npandas_categorical:null\n")
        )


def tree_block(tree: Tree, keys: str = "full") -> str:
    """The lines of one tree; ``keys``: full, or old (what LightGBM 2 and 3.0 wrote)."""
    bounds, words, thresholds = [0], [], []
    for node in tree.nodes:
        if node.members is None:
            thresholds.append(number(node.threshold))
            continue
        thresholds.append(str(len(bounds) - 1))
        row = [0] * (max(node.members, default=0) // 32 + 1)
        for m in node.members:
            row[m // 32] |= 1 << (m % 32)
        words += row
        bounds.append(len(words))
    n, leaves = len(tree.nodes), len(tree.values)
    lines = [f"num_leaves={leaves}", f"num_cat={len(bounds) - 1}"]
    lines += [f"split_feature={join(d.feature for d in tree.nodes)}", f"split_gain={join([1] * n)}"]
    lines += [f"threshold={join(thresholds)}", f"decision_type={join(d.decision for d in tree.nodes)}"]
    lines += [f"left_child={join(tree.left)}", f"right_child={join(tree.right)}"]
    lines += [f"leaf_value={join(map(number, tree.values))}"]
    if keys == "full":
        lines += [f"leaf_weight={join([1] * leaves)}"]
    lines += [f"leaf_count={join([1] * leaves)}", f"internal_value={join([0] * n)}"]
    if keys == "full":
        lines += [f"internal_weight={join([0] * n)}"]
    lines += [f"internal_count={join([2] * n)}"]
    if len(bounds) > 1:
        lines += [f"cat_boundaries={join(bounds)}", f"cat_threshold={join(words)}"]
    if keys == "full":
        lines += [f"is_linear={int(tree.linear is not None)}"]
    if tree.linear is not None:
        lines += [f"leaf_const={join(number(c) for c, _ in tree.linear)}"]
        lines += [f"num_features={join(len(t) for _, t in tree.linear)}"]
        lines += ["leaf_features=" + "".join("".join(f"{f} " for f, _ in t) + " " for _, t in tree.linear)]
        lines += ["leaf_coeff=" + "".join("".join(f"{number(c)} " for _, c in t) + " " for _, t in tree.linear)]
    return "\n".join([*lines, "shrinkage=1", ""])


def number(value: float) -> str:
    return f"{value:.17g}"


def join(values) -> str:
    return " ".join(str(v) for v in values)


def chain(nodes: list[Node], values: list[float]) -> Tree:
    """A tree in which every right child is the next node."""
    n = len(nodes)
    return Tree(nodes, [~i for i in range(n)], [*range(1, n), ~n], values)


def stump(threshold: float, missing: int = NONE, default_left: bool = False, feature: int = 0) -> Tree:
    """Left 1.0, right 2.0."""
    return chain([Node(feature, threshold, missing, default_left)], [1.0, 2.0])

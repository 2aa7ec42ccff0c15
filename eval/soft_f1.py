"""BIRD's soft F1: how much of a result's content was found, row by row."""

from collections.abc import Sequence

from merit_sql.domain.execution import Row


def soft_f1(gold: Sequence[Row], predicted: Sequence[Row]) -> float:
    """Soft F1 of a result in [0, 1], after the scorer of BIRD's mini_dev.

    Duplicate rows are dropped, the first one kept; rows are paired by their place. Within a pair, with n
    gold columns, a cell counts by membership in the other row, not by position: true positives are the
    predicted cells that the gold row holds, false positives the other predicted cells, false negatives
    the gold cells that the predicted row lacks, each over n. An unpaired row counts 1 as a false negative
    or positive.
    """
    if not gold and not predicted:
        return 1.0
    wanted = list(dict.fromkeys(gold))
    found = list(dict.fromkeys(predicted))
    true_positive: float = 0
    false_positive: float = max(len(found) - len(wanted), 0)
    false_negative: float = max(len(wanted) - len(found), 0)
    for gold_row, row in zip(wanted, found, strict=False):
        width = len(gold_row)
        matches = sum(cell in gold_row for cell in row)
        true_positive += matches / width
        false_positive += (len(row) - matches) / width
        false_negative += sum(cell not in row for cell in gold_row) / width
    precision = _ratio(true_positive, true_positive + false_positive)
    recall = _ratio(true_positive, true_positive + false_negative)
    return _ratio(2 * precision * recall, precision + recall)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0

"""The greatest of each row of many products, without sorting the rows."""

from __future__ import annotations

from typing import Any


def best_columns(products: Any, k: int, strided: int) -> tuple[Any, Any]:
    """The k greatest products of each row and their columns, in no order (two tensors (rows, k)).

    Where fewer than k are above zero, the others may be any. They lie in the k strided groups of columns with the
    highest maxima, so only those are sorted. Products are compared by their bits as integers, which is faster: above
    zero that is the order of the numbers.

    Args:
        products: bfloat16 or float32 (rows, columns); the columns are a multiple of `strided`.
        k: how many; fewer where there are fewer columns.
        strided: how many columns a group has.
    """
    import torch

    bits = products.view(torch.int16 if products.dtype == torch.bfloat16 else torch.int32)
    groups = products.shape[1] // strided
    block = bits.view(-1, strided, groups)
    top = block.amax(dim=1).topk(min(k, groups), dim=1, sorted=False).indices
    cells = block.gather(2, top[:, None, :].expand(-1, strided, -1)).flatten(1)
    best = cells.topk(min(k, cells.shape[1]), dim=1, sorted=False)
    width = top.shape[1]
    columns = best.indices // width * groups + top.gather(1, best.indices % width)
    return best.values.view(products.dtype), columns

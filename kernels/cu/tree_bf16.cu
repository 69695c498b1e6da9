// Search of trees whose weights are bf16.
#include "tree.cuh"

XC_TREE(bf16, XcBf16)

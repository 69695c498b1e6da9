// Search of trees whose weights are f16.
#include "tree.cuh"

XC_TREE(f16, XcF16)

// Search of trees whose weights are f32.
#include "tree.cuh"

XC_TREE(f32, XcF32)

XC_KERNEL xc_layout_tree(u32* out, u32 room)
{
    typedef XcTreeLevel L;
    typedef XcTree T;
    typedef XcTreeSearch S;
    typedef XcTreeQueries Q;
    xc_write_layout(out, room, sizeof(L), XC_AT(L, records), XC_AT(L, headers), XC_AT(L, values), XC_AT(L, directory),
        XC_AT(L, bias), XC_AT(L, part_ptr), sizeof(T), XC_AT(T, levels), XC_AT(T, slot_map), XC_AT(T, labels),
        XC_AT(T, n_levels), XC_AT(T, n_features), sizeof(S), XC_AT(S, beam), XC_AT(S, top_k), XC_AT(S, keys_room),
        XC_AT(S, a_round), XC_AT(S, longest), XC_AT(S, post), XC_AT(S, power), XC_AT(S, all_leaves), XC_AT(S, out_stride),
        sizeof(Q), XC_AT(Q, row_ptr), XC_AT(Q, features), XC_AT(Q, values), XC_AT(Q, out), XC_AT(Q, n_out));
}

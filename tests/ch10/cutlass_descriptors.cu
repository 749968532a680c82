// Prints what CUTLASS's own code gives for the tiles of chapter 10, as descriptors.cu does for ours.
#include <cstdint>
#include <cstdio>

// On a host shared memory has no addresses, and CUTLASS's function says so and gives 0: here a pointer is the address that it was made of.
#define cast_smem_ptr_to_uint address_on_a_device
#include <cute/arch/util.hpp>
#undef cast_smem_ptr_to_uint
namespace cute {
CUTE_HOST_DEVICE uint32_t cast_smem_ptr_to_uint(void const* pointer) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer)); }
}  // namespace cute

#include <cute/atom/mma_traits_sm100.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cute/tensor.hpp>

using namespace cute;
using Element = cutlass::bfloat16_t;
constexpr auto K_MAJOR = UMMA::Major::K;
constexpr uint32_t ADDRESSES[] = {0, 0x400, 0x7C00, 0x37C00};

void show(const char* name, uint64_t value) { std::printf("%s %llx\n", name, static_cast<unsigned long long>(value)); }

// A tile of ROWS x 64 in the 128-byte swizzle, and of it what one product reads: 16 of K, the first or one of the next three.
template <int ROWS, typename Atom>
auto operand(Atom atom, uint32_t address, int slice) {
    auto tile = make_tensor(make_smem_ptr(reinterpret_cast<Element*>(uintptr_t(address))), tile_to_shape(atom, Shape<Int<ROWS>, _64>{}));
    return local_tile(tile, Shape<Int<ROWS>, _16>{}, make_coord(0, slice));
}

template <int ROWS>
void show_operands() {
    char name[64];
    for (uint32_t address : ADDRESSES) {
        for (int slice = 0; slice < 4; slice++) {
            std::snprintf(name, sizeof name, "wgmma_%x_slice_%d_of_%d_rows", address, slice, ROWS);
            auto hopper = operand<ROWS>(SM90::GMMA::Layout_K_SW128_Atom<Element>{}, address, slice);
            show(name, (uint64_t)SM90::GMMA::make_gmma_desc<SM90::GMMA::Major::K>(hopper));
            std::snprintf(name, sizeof name, "tcgen05_%x_slice_%d_of_%d_rows", address, slice, ROWS);
            show(name, UMMA::make_umma_desc<K_MAJOR>(operand<ROWS>(UMMA::Layout_K_SW128_Atom<Element>{}, address, slice)));
        }
    }
}

// Rows of N in panels of 64: a tile of KEYS x 128 whose K runs down the rows, and the K-step of 16 rows from 16 `step` on.
template <int KEYS>
void show_rows(int step) {
    char name[64];
    for (uint32_t address : ADDRESSES) {
        auto tile = make_tensor(make_smem_ptr(reinterpret_cast<Element*>(uintptr_t(address))),
                                tile_to_shape(SM90::GMMA::Layout_MN_SW128_Atom<Element>{}, Shape<_128, Int<KEYS>>{}, Step<_2, _1>{}));
        std::snprintf(name, sizeof name, "rows_%x_step_%d_of_%d", address, step, KEYS);
        show(name, (uint64_t)SM90::GMMA::make_gmma_desc<SM90::GMMA::Major::MN>(local_tile(tile, Shape<_128, _16>{}, make_coord(0, step))));
    }
}

int main() {
    show_rows<176>(0);
    show_rows<176>(10);
    show_operands<64>();   // a warpgroup's rows of a
    show_operands<128>();  // a, and a block's half of the pair's b
    show_operands<192>();  // the twin's b
    show_operands<256>();  // b
    show("instruction_64", uint32_t(UMMA::make_instr_desc<Element, Element, float, 128, 64, K_MAJOR, K_MAJOR>()));
    show("instruction_128", uint32_t(UMMA::make_instr_desc<Element, Element, float, 128, 128, K_MAJOR, K_MAJOR>()));
    show("instruction_256", uint32_t(UMMA::make_instr_desc<Element, Element, float, 128, 256, K_MAJOR, K_MAJOR>()));
    show("instruction_pair", uint32_t(UMMA::make_instr_desc<Element, Element, float, 256, 256, K_MAJOR, K_MAJOR>()));
    const Swizzle<3, 4, 3> swizzle;  // of bytes: the layout of B128 in the comment on make_umma_desc
    for (int row = 0; row < 256; row++) {
        for (int chunk = 0; chunk < 8; chunk++) std::printf("swizzled_%d_%d %x\n", row, chunk, swizzle(row * 128 + chunk * 16));
    }
}

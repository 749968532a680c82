// Prints what CUTLASS's own code gives for the tiles of chapter 10, as descriptors.cu does for ours; it names no address but 0.
#include <cstdio>

#include <cute/atom/mma_traits_sm100.hpp>
#include <cute/atom/mma_traits_sm90_gmma.hpp>
#include <cute/tensor.hpp>

using namespace cute;
using Element = cutlass::bfloat16_t;
constexpr auto K_MAJOR = UMMA::Major::K;

// A tile of 128 x 64 in the 128-byte swizzle, and of it what one product reads: 16 of K.
template <typename Atom>
auto operand(Atom atom) {
    auto tile = make_tensor(make_smem_ptr(static_cast<Element*>(nullptr)), tile_to_shape(atom, Shape<_128, _64>{}));
    return local_tile(tile, Shape<_128, _16>{}, make_coord(0, 0));
}

void show(const char* name, uint64_t value) { std::printf("%s %llx\n", name, static_cast<unsigned long long>(value)); }

int main() {
    show("wgmma_0", (uint64_t)SM90::GMMA::make_gmma_desc<SM90::GMMA::Major::K>(operand(SM90::GMMA::Layout_K_SW128_Atom<Element>{})));
    show("tcgen05_0", UMMA::make_umma_desc<K_MAJOR>(operand(UMMA::Layout_K_SW128_Atom<Element>{})));
    show("instruction_64", uint32_t(UMMA::make_instr_desc<Element, Element, float, 128, 64, K_MAJOR, K_MAJOR>()));
    show("instruction_128", uint32_t(UMMA::make_instr_desc<Element, Element, float, 128, 128, K_MAJOR, K_MAJOR>()));
    show("instruction_256", uint32_t(UMMA::make_instr_desc<Element, Element, float, 128, 256, K_MAJOR, K_MAJOR>()));
    show("instruction_pair", uint32_t(UMMA::make_instr_desc<Element, Element, float, 256, 256, K_MAJOR, K_MAJOR>()));
    const Swizzle<3, 4, 3> swizzle;  // of bytes: the layout of B128 in the comment on make_umma_desc
    for (int row = 0; row < 128; row++) {
        for (int chunk = 0; chunk < 8; chunk++) std::printf("swizzled_%d_%d %x\n", row, chunk, swizzle(row * 128 + chunk * 16));
    }
}

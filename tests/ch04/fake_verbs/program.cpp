// Sends through the card of ch04/shared_rdma_card.cuh, and prints what came of it.
#include <cstdio>
#include <numeric>
#include <vector>

#include "ch04/shared_rdma_card.cuh"

int (*post_send)(ibv_qp*, ibv_send_wr*) = nullptr;

int main() {
    void* library = dlopen("libibverbs.so.1", RTLD_NOW);
    post_send = reinterpret_cast<decltype(post_send)>(dlsym(library, "fake_post_send"));
    auto registered = reinterpret_cast<int (*)()>(dlsym(library, "fake_regions"));
    auto unread = reinterpret_cast<int (*)()>(dlsym(library, "fake_unread"));
    {
        RdmaCard card;
        std::vector<int> from(100000), to(from.size(), -1);
        std::iota(from.begin(), from.end(), 0);
        printf("opens %d\n", card.open());
        printf("writes %d\n", card.write(from.data(), to.data(), from.size() * sizeof(int)));
        printf("same %d\n", from == to);
        from[7] = 70;
        bool again = card.write(from.data(), to.data(), from.size() * sizeof(int));
        printf("again %d %d\n", again, to[7]);
        printf("unread %d\n", unread());
        printf("registered %d\n", registered());
        printf("beyond %d\n", card.write(from.data(), to.data(), 2 * from.size() * sizeof(int)));
    }
    printf("left %d\n", registered());
}

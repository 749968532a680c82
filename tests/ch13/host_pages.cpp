// The pool of ch13/shared_page_pool.cuh on pages of a file in memory, which mmap maps to any address: what is written can be read.
#include <sys/mman.h>
#include <unistd.h>

#include "shared_page_pool.cuh"

class HostMemory {
  public:
    using Page = off_t;
    static inline size_t most = 0, mapped = 0, waits = 0;

    HostMemory() : file(memfd_create("pages", 0)) {}
    size_t page_bytes() const { return 4096; }

    bool make(Page* page) {
        if (made == most) return false;
        *page = 4096 * made++;
        return ftruncate(file, 4096 * made) == 0;
    }

    char* reserve(size_t pages) { return static_cast<char*>(mmap(nullptr, 4096 * pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)); }

    void map(char* begin, const std::vector<Page>& pages) {
        for (const Page page : pages) {
            mmap(begin, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, page);
            begin += 4096;
        }
        mapped += pages.size();
    }

    void unmap(char* begin, size_t pages) {
        munmap(begin, 4096 * pages);
        mapped -= pages;
    }

    void wait() { waits++; }

  private:
    int file;
    size_t made = 0;
};

using Pool = PagePool<HostMemory>;

extern "C" {
Pool* pool_new(size_t most) {
    HostMemory::most = most;
    HostMemory::mapped = HostMemory::waits = 0;
    return new Pool(HostMemory());
}
void* pool_take(Pool* pool, size_t bytes, void* stream) {
    try {
        return pool->take(bytes, stream);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void pool_give(Pool* pool, void* address) { pool->give(address); }
size_t pool_pages(Pool* pool) { return pool->pages_made(); }
size_t pool_mapped() { return HostMemory::mapped; }
size_t pool_waits() { return HostMemory::waits; }
}

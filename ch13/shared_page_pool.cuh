// A pool of memory without holes: a block is a range of addresses of its own, behind which any free pages are mapped.
//
// A block that is given back stays mapped, for the next request of as many pages on its stream. Others' requests take its pages
// away, but first wait for the GPU. New pages are made when none are free. Requests below half a page share pages by powers of two.
#pragma once
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

// `Memory` has a type Page and `size_t page_bytes()`, `bool make(Page*)`, `char* reserve(size_t pages)`, `void map(char*, pages)`,
// `void unmap(char*, size_t pages)`, which gives the addresses back too, and `void wait()`, until no work uses any page.
template <class Memory>
class PagePool {
  public:
    using Stream = void*;

    explicit PagePool(Memory memory) : memory(std::move(memory)) {}

    // Throws std::bad_alloc if there are not enough pages, even with those of idle blocks.
    void* take(size_t bytes, Stream stream) {
        std::lock_guard<std::mutex> hold(lock);
        if (bytes <= memory.page_bytes() / 2) return take_part(part_of(bytes), stream);
        return take_pages((bytes + memory.page_bytes() - 1) / memory.page_bytes(), stream);
    }

    void give(void* address) {
        std::lock_guard<std::mutex> hold(lock);
        char* begin = static_cast<char*>(address);
        if (const auto part = parts.find(begin); part != parts.end()) {
            idle_parts[part->second].push_back(begin);
            return;
        }
        const auto found = used.find(begin);
        if (found == used.end()) return;
        idle.splice(idle.end(), used_blocks, found->second);
        used.erase(found);
    }

    size_t pages_made() const { return made; }

  private:
    using Page = typename Memory::Page;
    using Kind = std::pair<size_t, Stream>;  // of parts of a page: bytes and stream

    struct Block {
        char* begin;
        std::vector<Page> pages;
        Stream stream;
    };

    static constexpr size_t SMALLEST = 512;  // bytes of a part

    static size_t part_of(size_t bytes) {
        size_t part = SMALLEST;
        while (part < bytes) part *= 2;
        return part;
    }

    void* take_part(size_t bytes, Stream stream) {
        std::vector<char*>& free = idle_parts[{bytes, stream}];
        if (free.empty()) {
            char* page = take_pages(1, stream);  // for parts of this kind from now on
            used.erase(page);
            for (size_t at = 0; at < memory.page_bytes(); at += bytes) {
                free.push_back(page + at);
                parts[page + at] = {bytes, stream};
            }
        }
        char* begin = free.back();
        free.pop_back();
        return begin;
    }

    char* take_pages(size_t count, Stream stream) {
        for (auto block = idle.rbegin(); block != idle.rend(); ++block) {
            if (block->stream == stream && block->pages.size() == count) return use(std::prev(block.base()));
        }
        if (spare.size() < count && !idle.empty()) memory.wait();  // work launched before a block was given back may still use it
        while (spare.size() < count && !idle.empty()) {
            const std::vector<Page>& pages = idle.front().pages;
            memory.unmap(idle.front().begin, pages.size());
            spare.insert(spare.end(), pages.begin(), pages.end());
            idle.pop_front();
        }
        while (spare.size() < count) {
            Page page;
            if (!memory.make(&page)) throw std::bad_alloc();
            spare.push_back(page);
            made++;
        }
        std::vector<Page> pages(spare.end() - count, spare.end());
        char* begin = memory.reserve(count);
        memory.map(begin, pages);
        spare.resize(spare.size() - count);
        idle.push_back({begin, std::move(pages), stream});
        return use(std::prev(idle.end()));
    }

    char* use(typename std::list<Block>::iterator block) {
        used_blocks.splice(used_blocks.end(), idle, block);
        used[block->begin] = block;
        return block->begin;
    }

    std::mutex lock;
    Memory memory;
    size_t made = 0;
    std::vector<Page> spare;             // mapped nowhere
    std::list<Block> idle, used_blocks;  // idle: the block given back first is in front
    std::unordered_map<char*, typename std::list<Block>::iterator> used;
    std::unordered_map<char*, Kind> parts;
    std::map<Kind, std::vector<char*>> idle_parts;
};

// The first RDMA card, connected to itself: it reads memory, and writes what it read to other memory, as if that were another host's.
// Source: libibverbs, man 3 ibv_modify_qp and ibv_post_send. The library is opened when a card is, so nothing here needs it to load.
#pragma once
#include <algorithm>
#include <cstddef>
#include <map>
#if !__has_include(<infiniband/verbs.h>)

struct RdmaCard {  // without libibverbs-dev there is no card
    bool open() { return false; }
    bool write(const void*, void*, size_t) { return false; }
};

#else
#include <dlfcn.h>
#include <infiniband/verbs.h>

#define VERB(name) (reinterpret_cast<decltype(&(name))>(dlsym(library, #name)))

class RdmaCard {
  public:
    // False if there is no library, no card, or no connection.
    bool open() {
        library = dlopen("libibverbs.so.1", RTLD_NOW);
        if (!library) return false;
        ibv_device** devices = VERB(ibv_get_device_list)(nullptr);
        if (!devices || !devices[0]) return false;
        context = VERB(ibv_open_device)(devices[0]);
        VERB(ibv_free_device_list)(devices);
        if (!context || !(domain = VERB(ibv_alloc_pd)(context))) return false;
        if (!(queue = VERB(ibv_create_cq)(context, 2, nullptr, nullptr, 0))) return false;
        ibv_qp_init_attr attributes{nullptr, queue, queue, nullptr, {1, 1, 1, 1, 0}, IBV_QPT_RC};
        for (ibv_qp*& end : ends)
            if (!(end = VERB(ibv_create_qp)(domain, &attributes))) return false;
        return connect(ends[0], ends[1]) && connect(ends[1], ends[0]);
    }

    // Copies `bytes`, of the host's memory or a GPU's, and waits until they are there. A buffer, which must not grow, is registered once.
    // Before Hopper and over C2C a completed write may still be on its way into a GPU's memory, until a byte is read back, as NCCL does.
    bool write(const void* from, void* to, size_t bytes) {
        ibv_mr *source = memory(const_cast<void*>(from), bytes), *target = memory(to, bytes), *landing = memory(&last, 1);
        bool sent = source && target && landing;
        for (size_t done = 0; sent && done < bytes; done += MOST)
            sent = finish(IBV_WR_RDMA_WRITE, source, done, target, done, std::min(bytes - done, MOST));
        return sent && finish(IBV_WR_RDMA_READ, landing, 0, target, bytes - 1, 1);
    }

    ~RdmaCard() {
        for (ibv_qp* end : ends)
            if (end) VERB(ibv_destroy_qp)(end);
        for (auto& [address, region] : regions) VERB(ibv_dereg_mr)(region);
        if (queue) VERB(ibv_destroy_cq)(queue);
        if (domain) VERB(ibv_dealloc_pd)(domain);
        if (context) VERB(ibv_close_device)(context);
    }

  private:
    static constexpr size_t MOST = size_t(1) << 30;  // bytes of one request
    static constexpr uint8_t PORT = 1;
    static constexpr int REMOTE = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

    // Sends one request for `bytes` at these offsets, and waits for its completion.
    bool finish(ibv_wr_opcode code, ibv_mr* here, size_t from, ibv_mr* there, size_t to, size_t bytes) {
        ibv_sge span{reinterpret_cast<uint64_t>(here->addr) + from, static_cast<uint32_t>(bytes), here->lkey};
        ibv_send_wr request{0, nullptr, &span, 1, code, IBV_SEND_SIGNALED}, *refused = nullptr;
        request.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(there->addr) + to;
        request.wr.rdma.rkey = there->rkey;
        if (ibv_post_send(ends[0], &request, &refused)) return false;
        ibv_wc completion{};
        int found;
        while ((found = ibv_poll_cq(queue, 1, &completion)) == 0);
        return found > 0 && completion.status == IBV_WC_SUCCESS;
    }

    // With nvidia-peermem loaded, an address of the GPU's is registered like one of the host's.
    ibv_mr* memory(void* address, size_t bytes) {
        ibv_mr*& region = regions[address];
        if (!region) region = VERB(ibv_reg_mr)(domain, address, bytes, IBV_ACCESS_LOCAL_WRITE | REMOTE);
        return region;
    }

    // A queue pair gets ready in three steps: it knows its port, then its peer, then how long to try.
    bool connect(ibv_qp* end, ibv_qp* peer) {
        ibv_port_attr port{};
        auto* as_it_was = reinterpret_cast<_compat_ibv_port_attr*>(&port);
        ibv_qp_attr a{};
        if (VERB(ibv_query_port)(context, PORT, as_it_was) || VERB(ibv_query_gid)(context, PORT, 0, &a.ah_attr.grh.dgid)) return false;
        a.qp_state = IBV_QPS_INIT;
        a.port_num = PORT;
        a.qp_access_flags = REMOTE;
        if (VERB(ibv_modify_qp)(end, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) return false;
        a.qp_state = IBV_QPS_RTR;
        a.path_mtu = port.active_mtu;
        a.dest_qp_num = peer->qp_num;
        a.max_dest_rd_atomic = 1;
        a.min_rnr_timer = 12;
        a.ah_attr.dlid = port.lid;
        a.ah_attr.port_num = PORT;
        a.ah_attr.is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
        a.ah_attr.grh.hop_limit = 64;
        int path = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        if (VERB(ibv_modify_qp)(end, &a, IBV_QP_STATE | path)) return false;
        a.qp_state = IBV_QPS_RTS;
        a.timeout = 14;
        a.retry_cnt = a.rnr_retry = 7;
        a.max_rd_atomic = 1;
        int tries = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
        return VERB(ibv_modify_qp)(end, &a, IBV_QP_STATE | tries) == 0;
    }

    void* library = nullptr;
    ibv_context* context = nullptr;
    ibv_pd* domain = nullptr;
    ibv_cq* queue = nullptr;
    ibv_qp* ends[2] = {};
    std::map<void*, ibv_mr*> regions;
    char last = 0;  // where a byte that is read back lands
};
#undef VERB
#endif

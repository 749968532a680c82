// The first RDMA card, connected to itself: it reads memory, and writes what it read to other memory, as if that were another host's.
// Source: libibverbs, man 3 ibv_modify_qp and ibv_post_send. The library is opened when a card is, so nothing here needs it to load.
#pragma once
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
        ibv_qp_init_attr attributes{};
        attributes.send_cq = attributes.recv_cq = queue;
        attributes.cap = {1, 1, 1, 1, 0};
        attributes.qp_type = IBV_QPT_RC;
        for (ibv_qp*& end : ends) {
            if (!(end = VERB(ibv_create_qp)(domain, &attributes))) return false;
        }
        return connect(ends[0], ends[1]) && connect(ends[1], ends[0]);
    }

    // Copies `bytes`, of the host's memory or a GPU's, and waits until they are there. A buffer, which must not grow, is registered once.
    bool write(const void* from, void* to, size_t bytes) {
        ibv_mr *source = memory(const_cast<void*>(from), bytes), *target = memory(to, bytes);
        if (!source || !target) return false;
        for (size_t done = 0; done < bytes; done += MOST) {
            size_t part = bytes - done < MOST ? bytes - done : MOST;
            ibv_sge span{reinterpret_cast<uint64_t>(from) + done, static_cast<uint32_t>(part), source->lkey};
            ibv_send_wr request{}, *refused = nullptr;
            request.sg_list = &span;
            request.num_sge = 1;
            request.opcode = IBV_WR_RDMA_WRITE;
            request.send_flags = IBV_SEND_SIGNALED;
            request.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(to) + done;
            request.wr.rdma.rkey = target->rkey;
            if (ibv_post_send(ends[0], &request, &refused)) return false;
            ibv_wc completion{};
            int found;
            while ((found = ibv_poll_cq(queue, 1, &completion)) == 0);
            if (found < 0 || completion.status != IBV_WC_SUCCESS) return false;
        }
        return true;
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
    // With nvidia-peermem loaded, an address of the GPU's is registered like one of the host's.
    ibv_mr* memory(void* address, size_t bytes) {
        ibv_mr*& region = regions[address];
        if (!region) region = VERB(ibv_reg_mr)(domain, address, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
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
        a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
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
};
#undef VERB
#endif

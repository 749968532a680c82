// A card that is a memcpy: it demands the steps of a connection in their order, with what each needs, and keys of registered memory.
#include <cstring>
#include <map>

#include "infiniband/verbs.h"

static std::map<uint32_t, ibv_mr*> regions;
static std::map<uint32_t, ibv_qp*> ends;
static uint32_t next_number = 100;
static ibv_device device;
static ibv_context context;
static ibv_pd domain;
static uint64_t unread = 0;  // where the last write ended, until its last byte is read back

static bool inside(const ibv_mr* region, uint64_t address, size_t length) {
    return address >= uint64_t(region->addr) && address + length <= uint64_t(region->addr) + region->length;
}

extern "C" {
ibv_device** ibv_get_device_list(int*) { return new ibv_device*[2]{&device, nullptr}; }
void ibv_free_device_list(ibv_device** list) { delete[] list; }
ibv_context* ibv_open_device(ibv_device*) { return &context; }
int ibv_close_device(ibv_context*) { return 0; }
ibv_pd* ibv_alloc_pd(ibv_context*) { return &domain; }
int ibv_dealloc_pd(ibv_pd*) { return 0; }
ibv_cq* ibv_create_cq(ibv_context*, int, void*, void*, int) { return new ibv_cq{}; }
int ibv_destroy_cq(ibv_cq* queue) { return delete queue, 0; }
ibv_qp* ibv_create_qp(ibv_pd*, ibv_qp_init_attr* a) {
    ibv_qp* end = new ibv_qp{next_number++, IBV_QPS_RESET, 0, a->send_cq, 0};
    return ends[end->qp_num] = end;
}
int ibv_destroy_qp(ibv_qp* end) { return ends.erase(end->qp_num), delete end, 0; }
int ibv_modify_qp(ibv_qp* end, ibv_qp_attr* a, int mask) {
    const int needed[] = {
        0, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC};
    if (a->qp_state != end->state + 1 || mask != needed[a->qp_state]) return 22;
    end->state = a->qp_state;
    if (end->state == IBV_QPS_INIT) end->access = a->qp_access_flags;
    if (end->state == IBV_QPS_RTR) end->peer = a->dest_qp_num;
    if (a->qp_state == IBV_QPS_RTS && !a->max_rd_atomic) return 22;  // it could not read
    return 0;
}
int ibv_query_port(ibv_context*, uint8_t, _compat_ibv_port_attr* attributes) {
    *reinterpret_cast<ibv_port_attr*>(attributes) = {5, 7, IBV_LINK_LAYER_ETHERNET};
    return 0;
}
int ibv_query_gid(ibv_context*, uint8_t, int, ibv_gid* gid) { return memset(gid, 1, sizeof(*gid)), 0; }
ibv_mr* ibv_reg_mr(ibv_pd*, void* address, size_t length, int access) {
    uint32_t key = next_number++;
    return regions[key] = new ibv_mr{static_cast<char*>(address), length, key, key, access};
}
int ibv_dereg_mr(ibv_mr* region) { return regions.erase(region->lkey), delete region, 0; }
int fake_regions() { return int(regions.size()); }
int fake_unread() { return unread != 0; }
int fake_post_send(ibv_qp* end, ibv_send_wr* r) {
    ibv_sge& span = *r->sg_list;
    ibv_qp* peer = ends.count(end->peer) ? ends[end->peer] : nullptr;
    if (end->state != IBV_QPS_RTS || !regions.count(span.lkey) || !inside(regions[span.lkey], span.addr, span.length)) return 22;
    bool reads = r->opcode == IBV_WR_RDMA_READ;
    if (reads && !(regions[span.lkey]->access & IBV_ACCESS_LOCAL_WRITE)) return 22;
    int asked = reads ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
    ibv_mr* target = regions.count(r->wr.rdma.rkey) ? regions[r->wr.rdma.rkey] : nullptr;
    bool taken = peer && peer->peer == end->qp_num && peer->state >= IBV_QPS_RTR && peer->access & asked && target &&
                 target->access & asked && inside(target, r->wr.rdma.remote_addr, span.length);
    void *here = reinterpret_cast<void*>(span.addr), *there = reinterpret_cast<void*>(r->wr.rdma.remote_addr);
    uint64_t end_of_it = r->wr.rdma.remote_addr + span.length;
    if (taken && !reads) memcpy(there, here, span.length), unread = end_of_it;
    if (taken && reads) memcpy(here, there, span.length), unread = unread == end_of_it ? 0 : unread;
    end->queue->done += r->send_flags & IBV_SEND_SIGNALED ? 1 : 0;
    end->queue->status = taken ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR;
    return 0;
}
}

// As much of libibverbs as ch04/shared_rdma_card.cuh uses, by the names that the real header has.
#pragma once
#include <cstddef>
#include <cstdint>

enum ibv_qp_type { IBV_QPT_RC = 2 };
enum ibv_qp_state { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
enum { IBV_ACCESS_LOCAL_WRITE = 1, IBV_ACCESS_REMOTE_WRITE = 2, IBV_ACCESS_REMOTE_READ = 4, IBV_SEND_SIGNALED = 2, IBV_LINK_LAYER_ETHERNET = 2 };
enum ibv_wc_status { IBV_WC_SUCCESS, IBV_WC_REM_ACCESS_ERR = 10 };
enum ibv_wr_opcode { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ = 4 };
enum {
    IBV_QP_STATE = 1 << 0,
    IBV_QP_ACCESS_FLAGS = 1 << 3,
    IBV_QP_PKEY_INDEX = 1 << 4,
    IBV_QP_PORT = 1 << 5,
    IBV_QP_AV = 1 << 7,
    IBV_QP_PATH_MTU = 1 << 8,
    IBV_QP_TIMEOUT = 1 << 9,
    IBV_QP_RETRY_CNT = 1 << 10,
    IBV_QP_RNR_RETRY = 1 << 11,
    IBV_QP_RQ_PSN = 1 << 12,
    IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13,
    IBV_QP_MIN_RNR_TIMER = 1 << 15,
    IBV_QP_SQ_PSN = 1 << 16,
    IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
    IBV_QP_DEST_QPN = 1 << 20,
};

struct ibv_device {};
struct ibv_context {};
struct ibv_pd {};
struct ibv_cq {
    int done, status;
};
struct ibv_mr {
    char* addr;
    size_t length;
    uint32_t lkey, rkey;
    int access;
};
struct ibv_qp {
    uint32_t qp_num;
    ibv_qp_state state;
    uint32_t peer;
    ibv_cq* queue;
    unsigned access;
};
struct ibv_qp_cap {
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
};
struct ibv_qp_init_attr {
    void* qp_context;
    ibv_cq *send_cq, *recv_cq;
    void* srq;
    ibv_qp_cap cap;
    ibv_qp_type qp_type;
    int sq_sig_all;
};
union ibv_gid {
    uint8_t raw[16];
};
struct ibv_global_route {
    ibv_gid dgid;
    uint32_t flow_label;
    uint8_t sgid_index, hop_limit, traffic_class;
};
struct ibv_ah_attr {
    ibv_global_route grh;
    uint16_t dlid;
    uint8_t sl, src_path_bits, static_rate, is_global, port_num;
};
struct ibv_qp_attr {
    ibv_qp_state qp_state;
    int path_mtu;
    uint32_t dest_qp_num;
    unsigned qp_access_flags;
    ibv_ah_attr ah_attr;
    uint8_t max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry;
};
struct ibv_port_attr {
    int active_mtu;
    uint16_t lid;
    uint8_t link_layer;
};
struct _compat_ibv_port_attr;
struct ibv_sge {
    uint64_t addr;
    uint32_t length, lkey;
};
struct ibv_send_wr {
    uint64_t wr_id;
    ibv_send_wr* next;
    ibv_sge* sg_list;
    int num_sge;
    ibv_wr_opcode opcode;
    unsigned send_flags;
    union {
        struct {
            uint64_t remote_addr;
            uint32_t rkey;
        } rdma;
    } wr;
};
struct ibv_wc {
    uint64_t wr_id;
    ibv_wc_status status;
};

extern "C" {
ibv_device** ibv_get_device_list(int* count);
void ibv_free_device_list(ibv_device** list);
ibv_context* ibv_open_device(ibv_device* device);
int ibv_close_device(ibv_context* context);
ibv_pd* ibv_alloc_pd(ibv_context* context);
int ibv_dealloc_pd(ibv_pd* domain);
ibv_cq* ibv_create_cq(ibv_context* context, int entries, void*, void*, int);
int ibv_destroy_cq(ibv_cq* queue);
ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes);
int ibv_destroy_qp(ibv_qp* end);
int ibv_modify_qp(ibv_qp* end, ibv_qp_attr* attributes, int mask);
int ibv_query_port(ibv_context* context, uint8_t port, _compat_ibv_port_attr* attributes);
int ibv_query_gid(ibv_context* context, uint8_t port, int index, ibv_gid* gid);
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t length, int access);
int ibv_dereg_mr(ibv_mr* region);
int fake_post_send(ibv_qp* end, ibv_send_wr* request);
}

// In the real header these two are inline functions that call through the context.
inline int ibv_post_send(ibv_qp* end, ibv_send_wr* request, ibv_send_wr** refused) {
    extern int (*post_send)(ibv_qp*, ibv_send_wr*);
    *refused = nullptr;
    return post_send(end, request);
}
inline int ibv_poll_cq(ibv_cq* queue, int, ibv_wc* completion) {
    if (!queue->done) return 0;
    queue->done--;
    completion->status = ibv_wc_status(queue->status);
    return 1;
}

// What a tool does that NVTX_INJECTION64_PATH loads: it keeps the ranges that a process begins, and adds them to $NVTX_LISTENER at its end.
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE* ranges;  // in memory
static char* text;
static size_t size;

static nvtxStringHandle_t keep(nvtxDomainHandle_t domain, const char* name) { return (nvtxStringHandle_t)strdup(name); }

static int begin(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* range) {
    const int is_kept = range->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
    return fprintf(ranges, "%d %s\n", getpid(), is_kept ? (const char*)range->message.registered : range->message.ascii);
}

static void tell(void) {
    fclose(ranges);
    FILE* file = fopen(getenv("NVTX_LISTENER"), "a");
    fwrite(text, 1, size, file);
    fclose(file);
}

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t table_of) {
    const NvtxExportTableCallbacks* callbacks = (const NvtxExportTableCallbacks*)table_of(NVTX_ETID_CALLBACKS);
    NvtxFunctionTable functions;
    unsigned int count;
    if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &count)) return 0;
    *functions[NVTX_CBID_CORE2_DomainRegisterStringA] = (NvtxFunctionPointer)keep;
    *functions[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)begin;
    ranges = open_memstream(&text, &size);
    atexit(tell);
    return 1;
}

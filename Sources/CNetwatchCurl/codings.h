// The structures of zlib and libzstd with which their functions exchange buffers. netwatch loads the libraries at run
// time, as libcurl's libraries, so that it needs none of their headers. The structures have not changed since zlib 1.0
// and zstd 1.0.
#ifndef CNETWATCH_CURL_CODINGS_H
#define CNETWATCH_CURL_CODINGS_H

// `z_stream` of zlib.
struct netwatch_z_stream {
    const void *input;
    unsigned int input_count;
    unsigned long total_in;
    void *output;
    unsigned int output_count;
    unsigned long total_out;
    const char *message;
    void *state;
    void *allocate;
    void *release;
    void *context;
    int data_type;
    unsigned long checksum;
    unsigned long reserved;
};

// `ZSTD_inBuffer` and `ZSTD_outBuffer` of libzstd.
struct netwatch_zstd_input {
    const void *bytes;
    unsigned long count;
    unsigned long position;
};

struct netwatch_zstd_output {
    void *bytes;
    unsigned long count;
    unsigned long position;
};

#endif

// The structures of zlib and libzstd with which their functions exchange buffers.
//
// netwatch loads the libraries at run time, for two reasons: libcurl's development package does not require their
// headers, and a libcurl that was built without one of them does not require that library. The names that are loaded
// (libz.so.1, libzstd.so.1) contain the version of the binary interface, and the structures have not changed since zlib
// 1.0 and zstd 1.0. zlib also compares the size of its structure in inflateInit2_.
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

// The sizes in the headers of the libraries on 64-bit Linux.
_Static_assert(sizeof(struct netwatch_z_stream) == 112, "the layout differs from z_stream");
_Static_assert(sizeof(struct netwatch_zstd_input) == 24, "the layout differs from ZSTD_inBuffer");
_Static_assert(sizeof(struct netwatch_zstd_output) == 24, "the layout differs from ZSTD_outBuffer");

#endif

// libcurl, and wrappers for its variadic functions, which Swift does not import.
//
// A variadic call accepts arguments of any width. So each wrapper has the C type that libcurl reads: `long`,
// `curl_off_t` (always 64 bits), a string, a pointer, or a type of callback.
#ifndef CNETWATCH_CURL_SHIM_H
#define CNETWATCH_CURL_SHIM_H

#include <curl/curl.h>

#if LIBCURL_VERSION_NUM < 0x075100
#error "netwatch needs libcurl 7.81 or newer (libcurl4-openssl-dev)"
#endif

// Wrappers for curl_easy_setopt.
static inline CURLcode netwatch_easy_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode netwatch_easy_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

// libcurl copies the string. It does not copy the string of CURLOPT_POSTFIELDS, so this function must not be used for
// that option.
static inline CURLcode netwatch_easy_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

// For options with bytes, buffers, lists and the user pointers of callbacks.
static inline CURLcode netwatch_easy_set_pointer(CURL *easy, CURLoption option, const void *value) {
    return curl_easy_setopt(easy, option, value);
}

// For CURLOPT_WRITEFUNCTION, CURLOPT_HEADERFUNCTION and CURLOPT_READFUNCTION, whose callbacks have the same type.
static inline CURLcode netwatch_easy_set_data_callback(
    CURL *easy, CURLoption option, curl_write_callback callback
) {
    return curl_easy_setopt(easy, option, callback);
}

static inline CURLcode netwatch_easy_set_open_socket_callback(
    CURL *easy, curl_opensocket_callback callback
) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, callback);
}

static inline CURLcode netwatch_easy_set_close_socket_callback(
    CURL *easy, curl_closesocket_callback callback
) {
    return curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, callback);
}

static inline CURLcode netwatch_easy_set_socket_callback(CURL *easy, curl_sockopt_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, callback);
}

static inline CURLcode netwatch_easy_set_seek_callback(CURL *easy, curl_seek_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback);
}


static inline CURLcode netwatch_easy_set_debug_callback(CURL *easy, curl_debug_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, callback);
}

static inline CURLcode netwatch_easy_set_request_callback(CURL *easy, curl_prereq_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
}

static inline CURLcode netwatch_easy_set_ssl_context_callback(CURL *easy, curl_ssl_ctx_callback callback) {
    return curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, callback);
}

// libcurl copies the bytes.
static inline CURLcode netwatch_easy_set_blob(CURL *easy, CURLoption option, const void *bytes, size_t count) {
    struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
    return curl_easy_setopt(easy, option, &blob);
}

// libcurl 7.85 introduced the option with a string and deprecated the one with a bit mask.
static inline CURLcode netwatch_easy_allow_http_and_https_only(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

// Wrappers for curl_easy_getinfo. The result is 0 or NULL if libcurl does not know the value.
static inline long netwatch_easy_get_long(CURL *easy, CURLINFO info) {
    long value = 0;
    curl_easy_getinfo(easy, info, &value);
    return value;
}

static inline curl_off_t netwatch_easy_get_offset(CURL *easy, CURLINFO info) {
    curl_off_t value = 0;
    curl_easy_getinfo(easy, info, &value);
    return value;
}

// The handle owns the string.
static inline const char *netwatch_easy_get_string(CURL *easy, CURLINFO info) {
    char *value = NULL;
    curl_easy_getinfo(easy, info, &value);
    return value;
}

static inline void *netwatch_easy_get_private(CURL *easy) {
    void *value = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &value);
    return value;
}

// The OpenSSL object (SSL) of the current connection; NULL without TLS. libcurl must use OpenSSL.
static inline void *netwatch_easy_get_tls_connection(CURL *easy) {
    struct curl_tlssessioninfo *info = NULL;
    return curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &info) == CURLE_OK && info ? info->internals : NULL;
}

// Swift does not import macros that shift a cast value.
static const unsigned long netwatch_auth_basic = CURLAUTH_BASIC;
static const unsigned long netwatch_auth_digest = CURLAUTH_DIGEST;
static const unsigned long netwatch_auth_ntlm = CURLAUTH_NTLM;
static const unsigned long netwatch_auth_negotiate = CURLAUTH_NEGOTIATE;
static const unsigned long netwatch_auth_only = CURLAUTH_ONLY;

// Wrappers for curl_multi_setopt.
static inline CURLMcode netwatch_multi_set_socket_callback(
    CURLM *multi, curl_socket_callback callback, void *context
) {
    CURLMcode result = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, callback);
    return result != CURLM_OK ? result : curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
}

static inline CURLMcode netwatch_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

static inline CURLMcode netwatch_multi_set_timer_callback(
    CURLM *multi, curl_multi_timer_callback callback, void *context
) {
    CURLMcode result = curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, callback);
    return result != CURLM_OK ? result : curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
}

#endif

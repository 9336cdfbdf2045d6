// The functions of OpenSSL for libcurl's SSL context callback, which inspects the server's certificates.
//
// They are declared by hand, with OpenSSL's own struct tags and without any #include. <openssl/ssl.h> would include
// glibc's headers, which must not belong to this module (the shim of CNetwatchLinux explains why). The functions have
// not changed since OpenSSL 1.1.0.
#ifndef CNETWATCH_CURL_OPENSSL_H
#define CNETWATCH_CURL_OPENSSL_H

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct x509_store_ctx_st X509_STORE_CTX;
typedef struct x509_st X509;
typedef struct X509_crl_st X509_CRL;
typedef struct bio_st BIO;
typedef struct stack_st OPENSSL_STACK;
typedef struct crypto_ex_data_st CRYPTO_EX_DATA;

// OPENSSL_VERSION_NUMBER(3): the version of the OpenSSL that these functions belong to. Its upper 4 bits are the major
// version.
extern unsigned long OpenSSL_version_num(void);

// SSL_CTX_set_cert_verify_callback(3). OpenSSL calls the callback instead of X509_verify_cert.
extern void SSL_CTX_set_cert_verify_callback(
    SSL_CTX *context, int (*callback)(X509_STORE_CTX *, void *), void *argument
);

// CRYPTO_get_ex_new_index(3) and SSL_CTX_set_ex_data(3), which attach data to a context. `release` is called for the
// data when the context is freed. The class index of SSL_CTX is CRYPTO_EX_INDEX_SSL_CTX.
static const int netwatch_ex_index_ssl_ctx = 1;
typedef void netwatch_ex_free(void *, void *, CRYPTO_EX_DATA *, int, long, void *);
extern int CRYPTO_get_ex_new_index(
    int kind, long number, void *pointer, void *make, void *copy, netwatch_ex_free *release
);
extern int SSL_CTX_set_ex_data(SSL_CTX *context, int index, void *value);

// SSL_CTX_new(3), and SSL_CTX_ctrl(3) with SSL_CTRL_GET_MIN_PROTO_VERSION. A new context has the minimum version of
// OpenSSL's configuration; 0 if there is none.
static const int netwatch_ctrl_get_min_proto_version = 130;
extern const void *TLS_client_method(void);
extern SSL_CTX *SSL_CTX_new(const void *method);
extern long SSL_CTX_ctrl(SSL_CTX *context, int command, long number, void *pointer);
extern void SSL_CTX_free(SSL_CTX *context);

// SSL_has_pending(3). Returns 1 if the connection has received data that was not read from it.
extern int SSL_has_pending(const SSL *connection);

// SSL_CTX_set_tlsext_status_type(3), SSL_CTX_set_tlsext_status_cb(3), SSL_CTX_set_tlsext_status_arg(3) and
// SSL_get_tlsext_status_ocsp_resp(3), which are macros. OpenSSL calls the callback in each handshake after the chain
// was verified, even if the server has stapled no response. If it returns 0, the handshake fails.
static const int netwatch_ctrl_set_status_callback = 63;
static const int netwatch_ctrl_set_status_argument = 64;
static const int netwatch_ctrl_get_status_response = 70;
static const int netwatch_ctrl_set_status_type = 65;
static const long netwatch_status_type_ocsp = 1;
extern long SSL_ctrl(SSL *connection, int command, long number, void *pointer);
extern long SSL_CTX_callback_ctrl(SSL_CTX *context, int command, void (*callback)(void));
static inline void netwatch_set_status_callback(SSL_CTX *context, int (*callback)(SSL *, void *), void *argument) {
    SSL_CTX_callback_ctrl(context, netwatch_ctrl_set_status_callback, (void (*)(void))callback);
    SSL_CTX_ctrl(context, netwatch_ctrl_set_status_argument, 0, argument);
    SSL_CTX_ctrl(context, netwatch_ctrl_set_status_type, netwatch_status_type_ocsp, (void *)0);
}

// OCSP_response_status(3), OCSP_resp_find_status(3), OCSP_cert_to_id(3). OCSP_RESPONSE_STATUS_SUCCESSFUL and
// V_OCSP_CERTSTATUS_GOOD are 0. The connection or the context owns only the results of `SSL_…get…`.
typedef struct x509_store_st X509_STORE;
typedef struct evp_md_st EVP_MD;
typedef struct asn1_string_st ASN1_GENERALIZEDTIME;
typedef struct ocsp_response_st OCSP_RESPONSE;
typedef struct ocsp_basic_response_st OCSP_BASICRESP;
typedef struct ocsp_cert_id_st OCSP_CERTID;
extern OPENSSL_STACK *SSL_get0_verified_chain(const SSL *connection);
extern SSL_CTX *SSL_get_SSL_CTX(const SSL *connection);
extern X509_STORE *SSL_CTX_get_cert_store(const SSL_CTX *context);
extern const EVP_MD *EVP_sha1(void);
extern OCSP_RESPONSE *d2i_OCSP_RESPONSE(OCSP_RESPONSE **response, const unsigned char **bytes, long count);
extern void OCSP_RESPONSE_free(OCSP_RESPONSE *response);
extern int OCSP_response_status(OCSP_RESPONSE *response);
extern OCSP_BASICRESP *OCSP_response_get1_basic(OCSP_RESPONSE *response);
extern void OCSP_BASICRESP_free(OCSP_BASICRESP *response);
extern int OCSP_basic_verify(
    OCSP_BASICRESP *response, OPENSSL_STACK *certificates, X509_STORE *store, unsigned long flags
);
extern OCSP_CERTID *OCSP_cert_to_id(const EVP_MD *digest, const X509 *certificate, const X509 *issuer);
extern void OCSP_CERTID_free(OCSP_CERTID *id);
extern int OCSP_resp_find_status(
    OCSP_BASICRESP *response, OCSP_CERTID *id, int *status, int *reason, ASN1_GENERALIZEDTIME **revoked,
    ASN1_GENERALIZEDTIME **from, ASN1_GENERALIZEDTIME **until
);
extern int OCSP_check_validity(
    ASN1_GENERALIZEDTIME *from, ASN1_GENERALIZEDTIME *until, long tolerance, long maximumAge
);

// X509_verify_cert(3), X509_STORE_CTX_get_error(3).
extern int X509_verify_cert(X509_STORE_CTX *context);
extern int X509_STORE_CTX_get_error(const X509_STORE_CTX *context);
extern void X509_STORE_CTX_set_error(X509_STORE_CTX *context, int error);
extern int X509_STORE_CTX_get_error_depth(const X509_STORE_CTX *context);
extern const char *X509_verify_cert_error_string(long error);

// The chain that was built so far, the certificates that the server sent, and the server's own certificate. The context
// owns all of them.
extern OPENSSL_STACK *X509_STORE_CTX_get0_chain(const X509_STORE_CTX *context);
extern OPENSSL_STACK *X509_STORE_CTX_get0_untrusted(const X509_STORE_CTX *context);
extern X509 *X509_STORE_CTX_get0_cert(const X509_STORE_CTX *context);

// X509_STORE_CTX_set_verify_cb(3). The callback gets 0 for each problem. If it returns 1, the evaluation continues.
extern void X509_STORE_CTX_set_verify_cb(X509_STORE_CTX *context, int (*callback)(int isGood, X509_STORE_CTX *));
// X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_CRL_NOT_YET_VALID and X509_V_ERR_CRL_HAS_EXPIRED.
static const int netwatch_x509_error_no_crl = 3;
static const int netwatch_x509_error_early_crl = 11;
static const int netwatch_x509_error_old_crl = 12;

// X509_STORE_CTX_set0_crls(3). The caller still owns the stack. The constants are X509_V_FLAG_CRL_CHECK and
// X509_V_ERR_APPLICATION_VERIFICATION.
extern void X509_STORE_CTX_set0_crls(X509_STORE_CTX *context, OPENSSL_STACK *lists);
extern void X509_STORE_CTX_set_flags(X509_STORE_CTX *context, unsigned long flags);
static const unsigned long netwatch_x509_flag_crl_check = 0x4;
static const int netwatch_x509_error_application = 50;

// The functions behind the macros of DEFINE_STACK_OF(3).
extern OPENSSL_STACK *OPENSSL_sk_new_null(void);
extern int OPENSSL_sk_num(const OPENSSL_STACK *stack);
extern void *OPENSSL_sk_value(const OPENSSL_STACK *stack, int index);
extern int OPENSSL_sk_push(OPENSSL_STACK *stack, const void *value);
extern void OPENSSL_sk_pop_free(OPENSSL_STACK *stack, void (*release)(void *));

// d2i_X509(3). i2d_X509 returns the length of the encoded certificate. If it gets a buffer, it also writes the bytes
// and advances the pointer.
extern int i2d_X509(const X509 *certificate, unsigned char **buffer);

extern BIO *BIO_new_mem_buf(const void *bytes, int count);
extern int BIO_free(BIO *bio);
extern X509_CRL *PEM_read_bio_X509_CRL(BIO *bio, X509_CRL **list, void *password, void *argument);
extern void X509_CRL_free(X509_CRL *list);
extern void ERR_clear_error(void);

#endif

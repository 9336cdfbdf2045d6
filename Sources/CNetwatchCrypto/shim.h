// The functions of OpenSSL's libcrypto for SHA-256, AES-256-GCM, certificates and keys. libcurl loads libcrypto anyway.
//
// They are declared by hand, with OpenSSL's own struct tags and without any #include. <openssl/evp.h> would include
// glibc's headers, which must not belong to this module (the shim of CNetwatchLinux explains why). The functions have
// not changed since OpenSSL 1.1.0, except that 3.0 added some `const`.
#ifndef CNETWATCH_CRYPTO_SHIM_H
#define CNETWATCH_CRYPTO_SHIM_H

typedef struct evp_md_ctx_st EVP_MD_CTX;
typedef struct evp_md_st EVP_MD;
typedef struct engine_st ENGINE;
typedef struct evp_cipher_st EVP_CIPHER;
typedef struct evp_cipher_ctx_st EVP_CIPHER_CTX;

// OPENSSL_init_crypto(3). Returns 1 on success. The options of the first call decide whether OpenSSL frees its memory
// at exit(3).
static const unsigned long OPENSSL_INIT_NO_ATEXIT = 0x00080000;
extern int OPENSSL_init_crypto(unsigned long options, const void *settings);

extern EVP_MD_CTX *EVP_MD_CTX_new(void);
extern void EVP_MD_CTX_free(EVP_MD_CTX *context);
extern const EVP_MD *EVP_sha256(void);

// These functions return 1 on success. If the engine is NULL, the default implementation is used.
extern int EVP_DigestInit_ex(EVP_MD_CTX *context, const EVP_MD *type, ENGINE *engine);
extern int EVP_DigestUpdate(EVP_MD_CTX *context, const void *bytes, unsigned long count);
extern int EVP_DigestFinal_ex(EVP_MD_CTX *context, unsigned char *digest, unsigned int *count);

// Returns 1 on success.
extern int EVP_Digest(const void *bytes, unsigned long count, unsigned char *digest, unsigned int *size,
                      const EVP_MD *type, ENGINE *engine);

// EVP_EncryptInit(3). The functions return 1 on success; EVP_CipherFinal_ex returns 0 if the authentication tag is wrong.
// EVP_CIPHER_CTX_free overwrites the key in the context.
extern EVP_CIPHER_CTX *EVP_CIPHER_CTX_new(void);
extern void EVP_CIPHER_CTX_free(EVP_CIPHER_CTX *context);
extern const EVP_CIPHER *EVP_aes_256_ecb(void);
extern const EVP_CIPHER *EVP_aes_256_gcm(void);
extern int EVP_CipherInit_ex(EVP_CIPHER_CTX *context, const EVP_CIPHER *cipher, ENGINE *engine,
                             const unsigned char *key, const unsigned char *nonce, int isEncryption);
extern int EVP_CipherUpdate(EVP_CIPHER_CTX *context, unsigned char *output, int *count, const unsigned char *input,
                            int inputCount);
extern int EVP_CipherFinal_ex(EVP_CIPHER_CTX *context, unsigned char *output, int *count);
extern int EVP_CIPHER_CTX_set_padding(EVP_CIPHER_CTX *context, int isPadded);
extern int EVP_CIPHER_CTX_ctrl(EVP_CIPHER_CTX *context, int type, int count, void *value);
// EVP_CTRL_AEAD_GET_TAG and EVP_CTRL_AEAD_SET_TAG.
static const int netwatch_aead_get_tag = 0x10;
static const int netwatch_aead_set_tag = 0x11;

// RAND_bytes(3) returns 1 on success.
extern int RAND_bytes(unsigned char *bytes, int count);
extern void OPENSSL_cleanse(void *bytes, unsigned long count);

// ERR_set_mark(3). A mark before a call and ERR_pop_to_mark after it remove the errors of the call from the thread's
// error queue. A later call would otherwise report them.
extern int ERR_set_mark(void);
extern int ERR_pop_to_mark(void);

// BIO_s_mem(3): a BIO in memory, for reading and writing. BIO_read returns -1 at the end.
typedef struct bio_st BIO;
typedef struct bio_method_st BIO_METHOD;
extern const BIO_METHOD *BIO_s_mem(void);
extern BIO *BIO_new(const BIO_METHOD *method);
extern BIO *BIO_new_mem_buf(const void *bytes, int count);
extern int BIO_read(BIO *bio, void *bytes, int count);
extern int BIO_free(BIO *bio);

// d2i_X509(3). A `d2i` function parses bytes. It advances the pointer past the bytes that it has read, and returns NULL
// if it cannot parse them. An `i2d` function returns the length of the encoded value. If it gets a pointer, it also
// writes the bytes and advances the pointer.
typedef struct x509_st X509;
typedef struct X509_crl_st X509_CRL;
typedef struct X509_name_st X509_NAME;
typedef struct X509_pubkey_st X509_PUBKEY;
typedef struct asn1_string_st ASN1_TIME;
typedef struct evp_pkey_st EVP_PKEY;

extern X509 *d2i_X509(X509 **certificate, const unsigned char **bytes, long count);
extern int i2d_X509(const X509 *certificate, unsigned char **bytes);
extern void X509_free(X509 *certificate);
extern X509_NAME *X509_get_subject_name(const X509 *certificate);
extern X509_NAME *X509_get_issuer_name(const X509 *certificate);
extern const ASN1_TIME *X509_get0_notBefore(const X509 *certificate);
extern const ASN1_TIME *X509_get0_notAfter(const X509 *certificate);
extern X509_PUBKEY *X509_get_X509_PUBKEY(const X509 *certificate);
extern EVP_PKEY *X509_get0_pubkey(const X509 *certificate);
extern int X509_NAME_cmp(const X509_NAME *one, const X509_NAME *other);
// X509_verify(3). Returns 1 if the certificate was signed with the key.
extern int X509_verify(X509 *certificate, EVP_PKEY *key);
// X509_check_private_key(3). Returns 1 if the key belongs to the certificate.
extern int X509_check_private_key(const X509 *certificate, const EVP_PKEY *key);
// X509_check_host(3). Returns 1 if the certificate is valid for the name. With the flag
// X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, the name in the certificate may be `*.example.com`, but not `f*.example.com`.
static const unsigned int netwatch_x509_no_partial_wildcards = 0x4;
extern int X509_check_host(X509 *certificate, const char *host, unsigned long count, unsigned int flags,
                           char **name);
extern int X509_check_ip_asc(X509 *certificate, const char *address, unsigned int flags);
// X509_NAME_print_ex(3), whose manual page lists the flags.
extern int X509_NAME_print_ex(BIO *bio, const X509_NAME *name, int indent, unsigned long flags);

extern X509_CRL *d2i_X509_CRL(X509_CRL **list, const unsigned char **bytes, long count);
extern int i2d_X509_CRL(const X509_CRL *list, unsigned char **bytes);
extern void X509_CRL_free(X509_CRL *list);
extern X509_NAME *X509_CRL_get_issuer(const X509_CRL *list);
extern const ASN1_TIME *X509_CRL_get0_lastUpdate(const X509_CRL *list);
extern const ASN1_TIME *X509_CRL_get0_nextUpdate(const X509_CRL *list);

// X509_verify_cert(3). Returns 1 on success. A store retains what is added to it. A context retains nothing, and must
// be freed before its store.
typedef struct x509_store_st X509_STORE;
typedef struct x509_store_ctx_st X509_STORE_CTX;
typedef struct X509_VERIFY_PARAM_st X509_VERIFY_PARAM;
typedef struct stack_st OPENSSL_STACK;
extern X509_STORE *X509_STORE_new(void);
extern void X509_STORE_free(X509_STORE *store);
extern int X509_STORE_add_cert(X509_STORE *store, X509 *certificate);
extern int X509_STORE_add_crl(X509_STORE *store, X509_CRL *list);
// Adds the certificates of a file, and those of a directory when they are needed. Either may be NULL.
extern int X509_STORE_load_locations(X509_STORE *store, const char *file, const char *directory);
extern X509_STORE_CTX *X509_STORE_CTX_new(void);
extern void X509_STORE_CTX_free(X509_STORE_CTX *evaluation);
extern int X509_STORE_CTX_init(X509_STORE_CTX *evaluation, X509_STORE *store, X509 *certificate,
                               OPENSSL_STACK *others);
// Sets the defaults for a purpose, such as `ssl_server`.
extern int X509_STORE_CTX_set_default(X509_STORE_CTX *evaluation, const char *name);
extern void X509_STORE_CTX_set_flags(X509_STORE_CTX *evaluation, unsigned long flags);
extern X509_VERIFY_PARAM *X509_STORE_CTX_get0_param(const X509_STORE_CTX *evaluation);
extern void X509_VERIFY_PARAM_set_auth_level(X509_VERIFY_PARAM *parameters, int level);
extern int X509_verify_cert(X509_STORE_CTX *evaluation);
// X509_V_FLAG_CRL_CHECK and X509_V_FLAG_PARTIAL_CHAIN.
static const unsigned long netwatch_x509_crl_check = 0x4;
static const unsigned long netwatch_x509_partial_chain = 0x80000;

extern OPENSSL_STACK *OPENSSL_sk_new_null(void);
extern int OPENSSL_sk_push(OPENSSL_STACK *stack, const void *element);
extern int OPENSSL_sk_num(const OPENSSL_STACK *stack);
extern void *OPENSSL_sk_value(const OPENSSL_STACK *stack, int index);
extern void OPENSSL_sk_free(OPENSSL_STACK *stack);

// ASN1_TIME_set(3). `long` is time_t on 64-bit Linux.
extern ASN1_TIME *ASN1_TIME_set(ASN1_TIME *time, long seconds);
extern int ASN1_TIME_diff(int *days, int *seconds, const ASN1_TIME *from, const ASN1_TIME *to);
extern void ASN1_STRING_free(ASN1_TIME *string);

// The SubjectPublicKeyInfo (RFC 5280 §4.1.2.7). X509_PUBKEY_get0 returns the key in it, or NULL if the type of the key
// is unknown.
extern X509_PUBKEY *d2i_X509_PUBKEY(X509_PUBKEY **key, const unsigned char **bytes, long count);
extern int i2d_X509_PUBKEY(const X509_PUBKEY *key, unsigned char **bytes);
extern EVP_PKEY *X509_PUBKEY_get0(const X509_PUBKEY *key);
extern void X509_PUBKEY_free(X509_PUBKEY *key);

// Private keys of any type. If the callback is NULL, the user pointer is the passphrase.
typedef int pem_password_cb(char *buffer, int size, int forWriting, void *user);
extern EVP_PKEY *d2i_AutoPrivateKey(EVP_PKEY **key, const unsigned char **bytes, long count);
extern EVP_PKEY *PEM_read_bio_PrivateKey(BIO *bio, EVP_PKEY **key, pem_password_cb *callback, void *user);
// X509_SIG: an algorithm and octets. Encrypted PKCS#8 keys have this form (RFC 5958 §3).
typedef struct X509_sig_st X509_SIG;
extern X509_SIG *d2i_X509_SIG(X509_SIG **form, const unsigned char **bytes, long count);
extern void X509_SIG_free(X509_SIG *form);
// Decrypts an encrypted PKCS#8 key and returns it.
extern EVP_PKEY *d2i_PKCS8PrivateKey_bio(BIO *bio, EVP_PKEY **key, pem_password_cb *callback, void *user);
// PEM_write_bio_PrivateKey(3). Returns 1 on success. If the cipher is NULL, the key is not encrypted.
extern int PEM_write_bio_PrivateKey(BIO *bio, const EVP_PKEY *key, const EVP_CIPHER *cipher,
                                    const unsigned char *passphrase, int count, pem_password_cb *callback,
                                    void *user);
extern void EVP_PKEY_free(EVP_PKEY *key);

// PKCS12_parse(3). The caller owns the returned certificates.
typedef struct PKCS12_st PKCS12;
extern PKCS12 *d2i_PKCS12(PKCS12 **archive, const unsigned char **bytes, long count);
extern void PKCS12_free(PKCS12 *archive);
// Returns 1 if the archive has a MAC.
extern int PKCS12_mac_present(const PKCS12 *archive);
extern int PKCS12_verify_mac(PKCS12 *archive, const char *passphrase, int count);
extern int PKCS12_parse(PKCS12 *archive, const char *passphrase, EVP_PKEY **key, X509 **certificate,
                        OPENSSL_STACK **others);

#endif

/// The header fields that contain secrets, by their lower-case names.
///
/// The list has names, and no patterns such as `*-token` or `*-key`: `X-Page-Token`, `X-Routing-Key` and
/// `X-Idempotency-Key` contain no secrets. The signature of a single request, such as `X-Hub-Signature-256`, is not a
/// secret either, because it is not valid for another request.
package enum SecretHeaderFields {
    /// The fields of a request that contain credentials or cookies by RFC 9110 §11 and RFC 6265.
    package static let standard: Set<String> = ["authorization", "proxy-authorization", "cookie"]

    /// The fields that APIs use for keys and tokens. Names that several APIs share come first.
    private static let ofAPIs: Set<String> = [
        "x-api-key", "api-key", "apikey", "x-apikey", "x-api-token", "x-auth-token", "x-auth-key",
        "x-access-token", "x-access-key", "x-secret-key", "x-session-token", "x-auth", "x-session-id",
        // GitLab, HashiCorp, Cloudflare, AWS, Google, Azure, Datadog, Honeycomb, Shopify, RapidAPI, Docker, Sentry
        "private-token", "job-token", "deploy-token", "x-gitlab-token", "x-vault-token", "x-consul-token",
        "x-nomad-token", "x-auth-user-service-key", "x-amz-security-token", "x-goog-api-key",
        "x-goog-iam-authorization-token", "ocp-apim-subscription-key", "x-functions-key", "dd-api-key",
        "dd-application-key", "x-honeycomb-team", "x-shopify-access-token", "x-rapidapi-key",
        "x-registry-auth", "x-sentry-auth",
    ]

    /// The fields of a request that contain credentials or cookies: the standard fields, and the fields that many APIs
    /// use for keys and tokens.
    package static let request = standard.union(ofAPIs)

    /// The fields of requests and responses that contain credentials or cookies.
    package static let all = request.union(["set-cookie"])

    /// The fields of a request that must not be sent to another origin: those with secrets, and `Host`.
    package static let originBound = request.union(["host"])
}

/// The header fields that contain secrets, by their lower-case names.
package enum SecretHeaderFields {
    /// The fields of a request that contain credentials or cookies.
    package static let request: Set<String> = ["authorization", "proxy-authorization", "cookie"]

    /// The fields of requests and responses that contain credentials or cookies.
    static let all = request.union(["set-cookie"])

    /// The fields of a request that must not be sent to another origin: the secret fields, and the host name.
    static let originBound = request.union(["host"])
}

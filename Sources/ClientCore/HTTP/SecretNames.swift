internal import NetwatchTransport

/// The names of header fields, query items, form items and JSON members whose values the client's texts do not show.
/// These texts are descriptions, error messages and cURL commands.
///
/// The names are those of ``SecretHeaderFields`` and ``SecretQueryItems``, and others that suggest a secret. Decisions
/// use the two lists alone, for example which fields a redirect drops and which requests the queue refuses. So do the
/// queue's reports, in which the URL identifies a request.
enum SecretNames {
    /// Parts of names that suggest a secret.
    private static let words = ["token", "secret", "key", "password", "passwd", "passphrase", "signature"]
    /// Names that contain one of ``words`` but do not denote a secret.
    private static let exceptions: Set<String> = ["idempotency-key"]

    /// - Parameter name: The name in any case, after percent-decoding.
    static func contains(_ name: String) -> Bool {
        let name = name.lowercased()
        return SecretHeaderFields.all.contains(name) || SecretQueryItems.redacted.contains(name)
            || !exceptions.contains(name) && words.contains(where: name.contains)
    }
}

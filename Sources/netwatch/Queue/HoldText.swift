internal import OfflineQueue

/// Descriptions of why requests are held, and of what ends a hold.
enum HoldText {
    /// Returns the description for a hold reason of the control API; `nil` if there is none or it is unknown.
    static func description(_ name: String?) -> String? {
        name.flatMap(HoldReason.init(rawValue:)).map(description)
    }

    /// Returns the description of the hold that a reason begins with: `held (auth): HTTP 401`. Returns `nil` for any
    /// other reason.
    static func explanation(of reason: String?) -> String? {
        guard let name = reason?.prefixMatch(of: /held \((\w+)\)/)?.output.1 else { return nil }
        return description(String(name))
    }

    private static func description(_ reason: HoldReason) -> String {
        switch reason {
        case .trust:
            "the server's certificate is not trusted; tried again within 15 minutes, or when the path changes"
        case .configuration:
            "a setting of this machine is wrong; `netwatch queue flush` or a restart of the service tries it again"
        case .auth:
            "its credential is missing, refused or cannot be used; tried again when the credential changes"
        case .key:
            "the queue cannot decrypt it: restart the service with the encryption key; if the stored request was changed, "
                + "only `netwatch queue drop` ends it"
        case .ambiguous:
            "the server may have executed it, so the queue does not send it again automatically; "
                + "`netwatch queue retry` sends it again, `netwatch queue drop` ends it"
        case .user:
            "a user held it, or an import did because a part is missing (`error` in `netwatch queue show`); "
                + "`netwatch queue release` ends the hold"
        case .dependency:
            "a request that it depends on was not delivered; `netwatch queue release` sends it nevertheless"
        }
    }
}

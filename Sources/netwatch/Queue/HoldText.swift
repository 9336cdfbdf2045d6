internal import OfflineQueue

/// Descriptions of why requests are held, and of what ends a hold.
enum HoldText {
    /// Returns the description for a hold reason of the control API; `nil` if there is none or it is unknown.
    ///
    /// - Parameter cause: The text of the control API that says why the request is held.
    static func description(_ name: String?, _ cause: String?) -> String? {
        if name == HoldReason.auth.rawValue, cause?.hasSuffix("HTTP 407") == true { return proxy }
        return name.flatMap(HoldReason.init(rawValue:)).map(description)
    }

    /// The description of a hold for `auth` after a 407, which does not concern the credential of the request.
    private static let proxy =
        "HTTP 407: probably a proxy between this machine and the server requires its own credential; the credential of "
        + "the request is not the cause. `netwatch queue flush` tries the request again"

    private static func description(_ reason: HoldReason) -> String {
        switch reason {
        case .trust:
            "the server's certificate is not trusted; the queue tries the request again within 15 minutes, and when "
                + "the path changes"
        case .configuration:
            "a setting of this machine is wrong; `netwatch queue flush` or a restart of the service tries the request "
                + "again"
        case .auth:
            "the credential of the request is missing, refused or unusable; the queue tries the request again when the "
                + "credential changes, and `netwatch queue credential` names another one"
        case .key:
            "the queue cannot decrypt the request: restart the service with the encryption key; if the stored data was "
                + "changed, only `netwatch queue drop` ends the hold"
        case .ambiguous:
            "the server may have executed the request, so the queue does not send it again automatically; "
                + "`netwatch queue retry` and `release` send it again, `netwatch queue drop` cancels it"
        case .user:
            "a user held the request, or an import held it because a part is missing (`error` in "
                + "`netwatch queue show`); `netwatch queue release` ends the hold"
        case .dependency:
            "a request on which this one depends was not delivered; `netwatch queue release` sends this one "
                + "nevertheless"
        }
    }
}

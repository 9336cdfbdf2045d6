internal import NetwatchService
internal import OfflineQueue

/// Descriptions of why requests are held, and of what ends a hold.
enum HoldText {
    /// Returns the description for a hold reason of the control API; `nil` if there is none or it is unknown.
    ///
    /// - Parameter cause: The text of the control API that says why the request is held.
    static func description(_ name: String?, _ cause: String?) -> String? {
        if name == HoldReason.auth.rawValue, let cause {
            if cause.hasSuffix("HTTP 407") { return proxy }
            if cause.hasSuffix(ControlMessage.Entry.noCredential) { return noCredential }
        }
        return name.flatMap(HoldReason.init(rawValue:)).map(description)
    }

    /// The description of a hold for `auth` after a 407, which does not concern the credential of the request.
    private static let proxy =
        "HTTP 407: probably a proxy between this machine and the server requires its own credential; the credential of "
        + "the request is not the cause. The queue tries such a request again \(intervals); `netwatch queue flush` tries "
        + "all of them now"

    /// The description of a hold for `auth` after a 401 to a request without a credential.
    private static let noCredential =
        "the server requires credentials, and the request has none: `netwatch queue credential` gives it one. The queue "
        + "tries such a request again \(intervals), in case the server changes"

    private static let intervals = "after 5 minutes, and then at intervals that double up to an hour"

    private static func description(_ reason: HoldReason) -> String {
        switch reason {
        case .trust:
            "the server's certificate is not trusted; the queue tries the request again within 15 minutes, and when "
                + "the path changes"
        case .configuration:
            "a setting of this machine is wrong; `netwatch queue flush` or a restart of the service tries the request "
                + "again"
        case .auth:
            "the credential of the request is missing, refused or unusable. The queue tries all such requests again when "
                + "the credential changes, and one of them \(intervals); its success releases the others. `netwatch queue "
                + "credential` names another credential"
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

internal import CNetwatchCurl

/// Who a request may say that it comes from, when the server asks.
///
/// The first request goes without them; when it is answered with 401, it is sent again with what the server
/// asked for, once. They are not remembered: the next transfer is asked again. NTLM and Negotiate say it of
/// the connection rather than of the request (RFC 4559 §6); libcurl hands such a connection only to transfers
/// with the same credentials. Credentials in the URL come before these.
package struct TransferCredentials: Hashable, Sendable {
    /// Ways to say it. With several the strongest is taken that the server knows.
    package struct Schemes: OptionSet, Hashable, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// RFC 7617: the password as it is.
        package static let basic = Schemes(rawValue: 1)
        /// RFC 7616: a proof that it is known.
        package static let digest = Schemes(rawValue: 2)
        package static let ntlm = Schemes(rawValue: 4)
        /// RFC 4559: a Kerberos ticket of this process's user, whatever user and password are.
        package static let negotiate = Schemes(rawValue: 8)

        package static let all: Schemes = [.basic, .digest, .ntlm, .negotiate]
    }

    package var user: String
    package var password: String
    package var schemes: Schemes
    /// Whether they go with the first request, because the server has asked for them before. That works with
    /// ``Schemes/basic`` alone; what else there is answers a question that has to be asked anew.
    package var isPreemptive: Bool

    package init(
        user: String,
        password: String,
        schemes: Schemes = .all,
        isPreemptive: Bool = false
    ) {
        self.user = user
        self.password = password
        self.schemes = schemes
        self.isPreemptive = isPreemptive
    }

    /// For `CURLOPT_HTTPAUTH`.
    var mask: Int {
        isPreemptive && schemes == .basic ? Int(netwatch_auth_basic) : schemes.mask
    }
}

extension TransferCredentials.Schemes {
    /// For `CURLOPT_HTTPAUTH`.
    var mask: Int {
        // A single scheme would be used before the server has asked.
        var mask = netwatch_auth_only
        if contains(.basic) { mask |= netwatch_auth_basic }
        if contains(.digest) { mask |= netwatch_auth_digest }
        if contains(.ntlm) { mask |= netwatch_auth_ntlm }
        if contains(.negotiate) { mask |= netwatch_auth_negotiate }
        return Int(mask)
    }
}

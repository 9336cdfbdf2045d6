internal import CNetwatchCurl

/// The credentials that a transfer sends when the server asks for them.
///
/// The request is first sent without credentials. If the response is a 401, the request is sent again with the
/// credentials, once. The engine does not remember the challenge, so each transfer begins without credentials again.
///
/// NTLM and Negotiate authenticate the connection instead of the request (RFC 4559 §6). libcurl reuses such a
/// connection only for transfers with the same credentials.
///
/// Credentials in the URL take precedence.
package struct TransferCredentials: Hashable, Sendable {
    /// A set of authentication schemes. libcurl selects the strongest one that the server supports.
    package struct Schemes: OptionSet, Hashable, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) {
            self.rawValue = rawValue
        }

        /// Basic (RFC 7617): sends the password in plain text.
        package static let basic = Schemes(rawValue: 1)
        /// Digest (RFC 7616): sends a proof that the client knows the password.
        package static let digest = Schemes(rawValue: 2)
        package static let ntlm = Schemes(rawValue: 4)
        /// Negotiate (RFC 4559): sends a Kerberos ticket of the user who runs this process. `user` and `password` are
        /// ignored.
        package static let negotiate = Schemes(rawValue: 8)

        package static let all: Schemes = [.basic, .digest, .ntlm, .negotiate]

        // The function of `OptionSet` is not specialized in other modules, where it is slow.
        package var isEmpty: Bool { rawValue == 0 }
    }

    package var user: String
    package var password: String
    package var schemes: Schemes
    /// Whether the request carries the credentials from the start, without waiting for a 401. Set it if the server has
    /// asked for them before. Default `false`.
    ///
    /// This works only if ``schemes`` is ``Schemes/basic``. All other schemes must answer a new challenge each time.
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

    /// The value of `CURLOPT_HTTPAUTH`.
    var mask: Int {
        isPreemptive && schemes == .basic ? Int(netwatch_auth_basic) : schemes.mask
    }
}

extension TransferCredentials.Schemes {
    /// Creates the schemes of libcurl's `CURLAUTH_…` bits. Other bits are ignored.
    init(mask: Int) {
        let bits = UInt(bitPattern: mask)
        self.init(rawValue: 0)
        if bits & netwatch_auth_basic != 0 { insert(.basic) }
        if bits & netwatch_auth_digest != 0 { insert(.digest) }
        if bits & netwatch_auth_ntlm != 0 { insert(.ntlm) }
        if bits & netwatch_auth_negotiate != 0 { insert(.negotiate) }
    }

    /// The value of `CURLOPT_HTTPAUTH`.
    var mask: Int {
        // With a single scheme, libcurl would send the credentials before the server has asked. `netwatch_auth_only`
        // prevents that.
        var mask = netwatch_auth_only
        if contains(.basic) { mask |= netwatch_auth_basic }
        if contains(.digest) { mask |= netwatch_auth_digest }
        if contains(.ntlm) { mask |= netwatch_auth_ntlm }
        if contains(.negotiate) { mask |= netwatch_auth_negotiate }
        return Int(mask)
    }
}

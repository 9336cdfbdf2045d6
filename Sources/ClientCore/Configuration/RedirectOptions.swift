/// What redirects may do that is not permitted by default; see ``RequestOptions/redirects``.
public struct RedirectOptions: OptionSet, Sendable, Hashable {
    /// The options as bits.
    public let rawValue: Int

    /// Creates options from bits.
    public init(rawValue: Int) {
        self.rawValue = rawValue
    }

    /// A redirect from https to http is followed. Everything that is sent there, and the response, can be read and
    /// changed by any device on the network path.
    ///
    /// Even with this option, a redirect is refused if the redirecting host has a ``ServerTrustPolicy`` other than
    /// `disableEvaluation`.
    public static let insecure = RedirectOptions(rawValue: 1 << 0)

    /// After a redirect to another origin, the header fields of the session are sent to this origin. After the statuses
    /// 307 and 308, the body is sent, too. An origin is a scheme, a host and a port.
    ///
    /// The fields with credentials that <doc:Authentication> lists are not sent. The request's other own fields are
    /// sent even without this option.
    public static let crossOriginData = RedirectOptions(rawValue: 1 << 1)
}

/// A question that only the program can answer: whether its check accepts a server.
struct TrustQuestion: Hashable, Sendable {
    let check: TrustCheck
    let presented: PresentedTrust
}

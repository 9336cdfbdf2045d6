/// A place at which the client calls code of the program.
package enum CompletionHook: Int, CaseIterable, Sendable {
    case adapter, retrier, interceptorAdapts, interceptorRetries, offlineError
    // The functions of an event monitor.
    case willSend, didReceive, willFollow, didEndAttempt, willRetry
    case didResume, didSuspend, didCancel, didFinish
    // The closures of the session's delegate.
    case redirection, redirectionWithCompletion, challenge, response, responseWithCompletion
    case newBodyStream, didComplete
    // The closures of a request.
    case validator, serializer, destination, stream, uploadProgress, downloadProgress, handler
    // The closures of a multipart upload: the one that adds the parts, and the one that receives the request.
    case form, encodingCompletion
    // The functions of an owner, and the handler that is called when a queue has stored a request.
    case offer, withdrawal, stored
    // The evaluation of a TLS server: the function that returns the host's policy, and a custom evaluation.
    case policyLookup, evaluation

    /// Whether the hook is called only for requests to a TLS server.
    package var needsTLS: Bool { self == .policyLookup || self == .evaluation }

    /// One of this many calls tries to act. Hooks that are called rarely try it more often.
    var sides: Int {
        switch self {
        case .willFollow, .willRetry, .challenge, .newBodyStream, .form, .encodingCompletion, .withdrawal,
            .stored, .policyLookup, .evaluation, .redirection, .redirectionWithCompletion, .destination,
            .stream:
            4
        case .willSend, .didReceive, .didEndAttempt, .didResume, .didSuspend, .didFinish: 32
        default: 16
        }
    }
}

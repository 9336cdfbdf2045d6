internal import CNetwatchCurl

// The evaluation of the server's certificates.

extension Transfer {
    /// The maximum number of questions to the program for one transfer. Further ones are needed only if the server
    /// presents other certificates in each handshake.
    static let maximumQuestionCount = 4

    func evaluateHandshakes(of connection: OpaquePointer) -> CURLcode {
        let evaluator = TrustEvaluator(context.trust, host: url.bareHost, accepted: acceptedServer)
        self.evaluator = evaluator
        return evaluator.attach(to: connection) ? CURLE_OK : CURLE_OUT_OF_MEMORY
    }

    /// The question that the program must answer before the transfer can be added again; `nil` if there is none.
    var question: TrustQuestion? { evaluator?.question }

    /// Returns whether the transfer can be added again after the program has answered ``question``. If it cannot,
    /// because the server presents other certificates each time, this reason is recorded as ``stop``.
    func mayAskProgram(after code: CURLcode) -> Bool {
        guard code == CURLE_PEER_FAILED_VERIFICATION, question != nil, stop == nil else { return false }
        guard questionCount < Self.maximumQuestionCount else {
            stop = .certificatesVary
            return false
        }
        questionCount += 1
        sending.loseConnection(bytes: currentBytesSent)
        return true
    }

    /// Records that the program has accepted the server. The next handshake succeeds if the server presents the same
    /// certificates.
    func accept(_ server: PresentedTrust) {
        acceptedServer = server
        evaluator = nil
    }
}

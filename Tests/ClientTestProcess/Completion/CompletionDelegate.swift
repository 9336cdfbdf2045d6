internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport

/// How the delegate of a seed's session answers.
enum CompletionDelegate {
    /// It has no closures.
    case none
    /// Its closures return their answers.
    case immediate
    /// Its closures call a completion: immediately, later, twice or never.
    case later

    init(seed: UInt64) {
        switch seed / 2 % 5 {
        case 0: self = .none
        case 1, 2: self = .immediate
        default: self = .later
        }
    }

    func setClosures(of delegate: SessionDelegate, _ program: CompletionProgram) {
        switch self {
        case .none: return
        case .immediate: program.answerImmediately(delegate)
        case .later: program.answerLater(delegate)
        }
        program.setOtherClosures(of: delegate)
    }
}

extension CompletionProgram {
    private func called(_ hook: CompletionHook, of task: RequestTask) -> SeededGenerator {
        called(hook, of: Self.number(in: task.originalRequest?.url))
    }

    fileprivate func answerImmediately(_ delegate: SessionDelegate) {
        delegate.taskWillPerformHTTPRedirection = { _, task, _, next in
            var generator = self.called(.redirection, of: task)
            return generator.roll(6) == 0 ? nil : next
        }
        delegate.dataTaskDidReceiveResponse = { _, task, _ in
            var generator = self.called(.response, of: task)
            return generator.roll(10) == 0 ? .cancel : .allow
        }
    }

    fileprivate func answerLater(_ delegate: SessionDelegate) {
        delegate.taskWillPerformHTTPRedirectionWithCompletion = { _, task, _, next, completion in
            var generator = self.called(.redirectionWithCompletion, of: task)
            let answers = generator.roll(6) == 0 ? [nil, next] : [next, nil]
            self.give(answers, about: task, &generator, to: completion)
        }
        delegate.dataTaskDidReceiveResponseWithCompletion = { _, task, _, completion in
            var generator = self.called(.responseWithCompletion, of: task)
            let answers: [ResponseDisposition] =
                generator.roll(10) == 0 ? [.cancel, .allow] : [.allow, .cancel]
            self.give(answers, about: task, &generator, to: completion)
        }
    }

    /// Calls a completion with the first of two answers, immediately or later, calls it with both, or does not call it.
    private func give<Answer: Sendable>(
        _ answers: [Answer],
        about task: RequestTask,
        _ generator: inout SeededGenerator,
        to completion: @escaping @Sendable (Answer) -> Void
    ) {
        switch generator.roll(10) {
        case 0:
            for answer in answers { completion(answer) }
        case 1:
            DispatchQueue.global().asyncAfter(deadline: .now() + 0.002) { completion(answers[0]) }
        case 2: DispatchQueue.global().async { completion(answers[0]) }
        case 3: break
        case 4:
            let number = Self.number(in: task.originalRequest?.url)
            retain(completion, of: number, isCancelled: generator.roll(2) == 0)
        default: completion(answers[0])
        }
    }

    fileprivate func setOtherClosures(of delegate: SessionDelegate) {
        delegate.taskDidReceiveChallenge = { _, task, _ in
            var generator = self.called(.challenge, of: task)
            let credential = URLCredential(user: "user", password: "password", persistence: .none)
            switch generator.roll(6) {
            case 0: return (.cancelAuthenticationChallenge, nil)
            case 1: return (.performDefaultHandling, nil)
            case 2: return (.useCredential, nil)
            default: return (.useCredential, credential)
            }
        }
        delegate.taskNeedNewBodyStream = { _, task in
            var generator = self.called(.newBodyStream, of: task)
            return generator.roll(3) == 0 ? nil : InputStream(data: Data(repeating: 1, count: 10_000))
        }
        delegate.taskDidComplete = { _, task, _ in _ = self.called(.didComplete, of: task) }
    }
}

/// The policies of a seed's session. The program's code runs each time that a policy is looked up.
final class CompletionTrustManager: ServerTrustPolicyManager {
    private let program: CompletionProgram

    init(_ policies: [String: ServerTrustPolicy], _ program: CompletionProgram) {
        self.program = program
        super.init(policies: policies)
    }

    override func serverTrustPolicy(forHost host: String) -> ServerTrustPolicy? {
        program.called(.policyLookup, of: nil)
        return super.serverTrustPolicy(forHost: host)
    }
}

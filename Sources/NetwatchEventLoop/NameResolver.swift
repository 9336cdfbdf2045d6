internal import Glibc
internal import Synchronization

/// Resolves names with `getaddrinfo(3)` on a few threads of its own.
///
/// A lookup may block for tens of seconds when name servers are silent, so it must never run on an event
/// loop or on the cooperative pool. Lookups of a name that is being looked up join it, until ``renew()``; when every thread
/// is busy the others wait their turn, however many they are. A thread without work ends.
///
/// A resolver of a network namespace asks its name servers from there. Which ones those are it reads, like
/// everybody, from the files of the process's mount namespace; and what the C library hands to a service on
/// this machine (`nscd`, `nss-resolve`) is looked up where that service is.
package final class NameResolver: Sendable {
    /// Why a name has no addresses.
    package struct Failure: Error, Hashable, CustomStringConvertible {
        /// The code of `getaddrinfo(3)`: `EAI_NONAME`, `EAI_AGAIN`, …
        package let code: CInt
        /// `errno` when the code is `EAI_SYSTEM`, else 0.
        package let errno: CInt

        package init(code: CInt, errno: CInt = 0) {
            self.code = code
            self.errno = errno
        }

        package var description: String {
            code == EAI_SYSTEM ? errnoDescription(errno) : String(cString: gai_strerror(code))
        }
    }

    package typealias Outcome = Result<[IPAddress], Failure>

    /// What lookups have in common that join each other.
    private struct Question: Hashable {
        let name: String
        let generation: UInt64
    }

    private struct State {
        var waiters: [Question: [@Sendable (Outcome) -> Void]] = [:]
        var pending = WaitingLine<Question>()
        var threads = 0
        /// How often what was being looked up has become old.
        var generation: UInt64 = 0
    }

    private let maximumThreads: Int
    private let networkNamespace: String?
    private let lookUp: @Sendable (String) -> Outcome
    private let state = Mutex(State())

    /// The resolver that the whole process shares.
    package static let shared = NameResolver()

    /// - Parameters:
    ///   - maximumThreads: How many lookups run at once. Default 4.
    ///   - networkNamespace: A path to the network namespace that names are looked up in. `nil`, the default,
    ///     is the process's own. One that cannot be entered fails every lookup, with `EAI_SYSTEM`.
    ///   - lookUp: The blocking lookup; tests put their own here.
    package init(
        maximumThreads: Int = 4,
        networkNamespace: String? = nil,
        lookUp: @escaping @Sendable (String) -> Outcome = NameResolver.getAddresses
    ) {
        self.maximumThreads = maximumThreads
        self.networkNamespace = networkNamespace
        self.lookUp = lookUp
    }

    /// Looks a name up and calls `completion` once, on a resolver thread.
    ///
    /// The addresses come in the order of `getaddrinfo(3)`, which is RFC 6724's; there is at least one.
    package func resolve(_ name: String, completion: @escaping @Sendable (Outcome) -> Void) {
        let startsThread = state.withLock { state in
            let question = Question(name: name, generation: state.generation)
            state.waiters[question, default: []].append(completion)
            guard state.waiters[question]!.count == 1 else { return false }
            state.pending.append(question)
            guard state.threads < maximumThreads else { return false }
            state.threads += 1
            return true
        }
        if startsThread { startThread() }
    }

    /// Makes lookups from now on join none that is under way: the network has changed, and with it perhaps the answer.
    package func renew() {
        state.withLock { state in
            state.generation += 1
            // What waits for a thread will be asked of the new network.
            for old in state.pending.removeAll() {
                let question = Question(name: old.name, generation: state.generation)
                state.waiters[question] = state.waiters.removeValue(forKey: old)
                state.pending.append(question)
            }
        }
    }

    private func startThread() {
        do {
            try startDetachedThread(named: "nw-resolver") { self.run() }
        } catch {
            failWaiters(errno: error.errno)
        }
    }

    private func run() {
        do throws(SystemError) {
            work(in: try networkNamespace.map { path throws(SystemError) in try SocketNamespace(path) })
        } catch {
            failWaiters(errno: error.errno)
        }
    }

    /// Looks names up until none is waiting. The waiters are called outside the namespace.
    private func work(in namespace: SocketNamespace?) {
        while let question = nextQuestion() {
            let outcome = lookUp(question.name, in: namespace)
            let waiters = state.withLock { $0.waiters.removeValue(forKey: question) ?? [] }
            for waiter in waiters { waiter(outcome) }
        }
    }

    private func lookUp(_ name: String, in namespace: SocketNamespace?) -> Outcome {
        guard let namespace else { return lookUp(name) }
        do throws(SystemError) {
            return try namespace.run { () throws(SystemError) in lookUp(name) }
        } catch {
            return .failure(Failure(code: EAI_SYSTEM, errno: error.errno))
        }
    }

    private func nextQuestion() -> Question? {
        state.withLock { state in
            let question = state.pending.popFirst()
            if question == nil { state.threads -= 1 }
            return question
        }
    }

    /// Counts a thread that came to nothing. Without a single one nothing would ever answer those who wait;
    /// otherwise another takes the work.
    private func failWaiters(errno: CInt) {
        let abandoned: [@Sendable (Outcome) -> Void] = state.withLock { state in
            state.threads -= 1
            guard state.threads == 0 else { return [] }
            return state.pending.removeAll().flatMap { state.waiters.removeValue(forKey: $0) ?? [] }
        }
        for waiter in abandoned { waiter(.failure(Failure(code: EAI_SYSTEM, errno: errno))) }
    }

    /// `getaddrinfo(3)` for stream sockets of both families.
    package static func getAddresses(of name: String) -> Outcome {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(name, nil, &hints, &list)
        let error = errno
        defer { if let list { freeaddrinfo(list) } }
        guard code == 0 else {
            return .failure(Failure(code: code, errno: code == EAI_SYSTEM ? error : 0))
        }
        let addresses = sequence(first: list, next: { $0?.pointee.ai_next })
            .prefix { $0 != nil }
            .compactMap { IPAddress(socketAddress: $0!.pointee.ai_addr) }
        return addresses.isEmpty ? .failure(Failure(code: EAI_NONAME)) : .success(addresses)
    }
}

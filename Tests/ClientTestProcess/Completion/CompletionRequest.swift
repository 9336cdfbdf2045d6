internal import ClientCore
internal import Dispatch
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport

/// One request of a seed, with the random calls that a program makes on it.
struct CompletionRequest {
    private struct Refusal: Error {}

    private let number: Int
    private let run: CompletionRun
    private var generator: SeededGenerator

    init(_ number: Int, of run: CompletionRun) {
        self.number = number
        self.run = run
        generator = SeededGenerator(seed: run.seed &* 131 &+ UInt64(number))
    }

    private mutating func roll(_ sides: Int) -> Int { Int.random(in: 0..<sides, using: &generator) }

    mutating func run() async {
        await pause()
        guard let request = make() else { return }
        for _ in 0..<roll(8) {
            call(request)
            await pause()
        }
        // Resumes the request, because a suspended request never ends.
        request.resume()
        await pause()
        if roll(4) == 0 { request.cancel() }
    }

    /// Makes a request for the seed's queue: a background session's, or one that fails, because nothing listens on its
    /// port. The calls of ``run()`` end most requests before they are stored.
    mutating func runQueued() async {
        await pause()
        let way: CompletionQueue.Way = roll(3) == 0 ? .background : run.way
        guard let session = way == .background ? run.backgroundSession : run.session,
            let request = await makeQueued(session)
        else { return }
        run.began(request, number, way)
        if way == .request { run.store(request) }
        addHandler(to: request)
        if roll(4) == 0 { wait(for: request) }
        request.resume()
        await pause()
        if roll(6) == 0 { request.cancel() }
    }

    /// - Returns: `nil` if the form of a multipart upload could not be encoded, which is a violation.
    private mutating func makeQueued(_ session: SessionManager) async -> DataRequest? {
        let url = "\(Self.refusingServer)/\(run.seed)/\(number)"
        let body = Data(repeating: 1, count: 1 << roll(18))
        switch roll(6) {
        case 0: return session.upload(body, to: url)
        case 1: return session.upload(file("body"), to: url)
        case 2: return session.upload(InputStream(data: body), to: url)
        case 3: return await multipart(session, body, to: url, threshold: roll(2) == 0 ? 0 : .max)
        default: return session.request(url, method: roll(2) == 0 ? .get : .post)
        }
    }

    private func multipart(
        _ session: SessionManager,
        _ body: Data,
        to url: String,
        threshold: UInt64
    ) async -> DataRequest? {
        let (program, number) = (run.program, number)
        return await withCheckedContinuation { encoded in
            session.upload(
                multipartFormData: { form in
                    program.called(.form, of: number)
                    form.append(body, withName: "field")
                },
                usingThreshold: threshold,
                to: url,
                queue: run.queue
            ) { [record = run.record] result in
                program.called(.encodingCompletion, of: number)
                switch result {
                case .success(let upload, _, _): encoded.resume(returning: upload)
                case .failure(let error):
                    record.violated("the form cannot be encoded: \(error)")
                    encoded.resume(returning: nil)
                }
            }
        }
    }

    private mutating func pause() async {
        switch roll(4) {
        case 0: await Task.yield()
        case 1: try? await Task.sleep(for: .microseconds(roll(1500)))
        default: break
        }
    }

    // MARK: Creating the request

    private mutating func make() -> Request? {
        // Retains the session, because another request of the seed may release it in the meantime.
        guard let session = run.session else { return nil }
        let request = make(session)
        run.began(request, number, run.way)
        watchProgress(of: request)
        if roll(2) == 0 { run.store(request) }
        addHandler(to: request)
        return request
    }

    private mutating func make(_ session: SessionManager) -> Request {
        let url = "\(server())/\(run.seed)/\(number)"
        let body = Data(repeating: 1, count: 1 << roll(18))
        switch roll(10) {
        case 0: return session.upload(body, to: url)
        case 1: return session.upload(file("body"), to: url, method: .put)
        case 2: return session.upload(InputStream(data: body), to: url)
        case 3: return session.download(url)
        case 4: return session.download(url, to: destination())
        // Two requests of a seed share each partial file. One of them fails if the other is still running.
        case 5: return session.download(url, keepingPartialFileAt: file("kept\(number / 2)"))
        case 6: return session.request("no URL")
        case 7:
            let (program, number) = (run.program, number)
            return session.request(url).stream { _ in program.called(.stream, of: number) }
        default: return session.request(url)
        }
    }

    private func destination() -> DownloadRequest.DownloadFileDestination {
        let (program, number, target) = (run.program, number, file("moved\(number)"))
        return { _, _ in
            program.called(.destination, of: number)
            return (target, [.removePreviousFile])
        }
    }

    /// A URL at which nothing listens.
    private static let refusingServer = "http://127.0.0.1:1"

    private mutating func server() -> String {
        if run.hasQueue, roll(2) == 0 { return Self.refusingServer }
        if let paths = run.paths { return roll(3) == 0 ? paths.named : paths.server.url }
        return roll(4) == 0
            ? run.environment.tls?.url ?? run.environment.server.url : run.environment.server.url
    }

    private func file(_ name: String) -> URL { URL(fileURLWithPath: run.environment.scratch.file(name)) }

    private func watchProgress(of request: Request) {
        let (record, program, number) = (run.record, run.program, number)
        let download: @Sendable (Progress) -> Void = {
            record.note($0, of: "a download's progress")
            program.called(.downloadProgress, of: number)
        }
        (request as? DataRequest)?.downloadProgress(queue: run.queue, closure: download)
        (request as? DownloadRequest)?.downloadProgress(queue: run.queue, closure: download)
        (request as? UploadRequest)?.uploadProgress(queue: run.queue) {
            record.note($0, of: "an upload's progress")
            program.called(.uploadProgress, of: number)
        }
    }

    // MARK: Calls

    private mutating func call(_ request: Request) {
        switch roll(17) {
        case 15, 16: run.store(request)
        case 0, 1: request.suspend()
        case 2, 3: request.resume()
        case 4: if roll(3) == 0 { request.cancel() }
        case 5: if roll(3) == 0 { DispatchQueue.global().async { request.cancel() } }
        case 6:
            if roll(6) == 0 { run.dropSessions() }
            if roll(12) == 0 { Task { [run] in await run.stopQueue() } }
        case 7: request.authenticate(user: "user", password: "password")
        case 8: validate(request)
        case 9, 10: wait(for: request)
        case 11: run.setOwner(of: request, isRetaining: roll(3) == 0)
        case 12, 13: run.set(isOpen: roll(3) == 0)
        default: addHandler(to: request)
        }
    }

    private mutating func validate(_ request: Request) {
        let (isRefused, program, number) = (roll(4) == 0, run.program, number)
        let check: @Sendable () -> Request.ValidationResult = {
            program.called(.validator, of: number)
            return isRefused ? .failure(Refusal()) : .success
        }
        if let request = request as? DataRequest { request.validate().validate { _, _, _ in check() } }
        if let request = request as? DownloadRequest { request.validate().validate { _, _, _, _ in check() } }
    }

    // MARK: Handlers and waits

    private mutating func addHandler(to request: Request) {
        let (id, number, run) = (run.record.expect(), number, run)
        run.countHandler()
        let told: @Sendable () -> Void = {
            run.program.called(.handler, of: number)
            run.record.note(id, of: number)
        }
        let kind = roll(4)
        if let request = request as? DataRequest {
            switch kind {
            case 0, 1: request.response(queue: run.queue) { _ in told() }
            case 2: request.responseString(queue: run.queue) { _ in told() }
            default: request.response(queue: run.queue, responseSerializer: serializer()) { _ in told() }
            }
        }
        if let request = request as? DownloadRequest { addHandler(to: request, kind, told) }
    }

    private func addHandler(to request: DownloadRequest, _ kind: Int, _ told: @escaping @Sendable () -> Void)
    {
        let leftovers = run.leftovers
        let left: @Sendable (URL?, URL?, Data?) -> Void = { temporary, destination, resumeData in
            leftovers.note(file: temporary, resumeData: resumeData)
            leftovers.note(file: destination, resumeData: nil)
        }
        guard kind == 0 else {
            request.response(queue: run.queue) { response in
                left(response.temporaryURL, response.destinationURL, response.resumeData)
                told()
            }
            return
        }
        request.response(queue: run.queue, responseSerializer: downloadSerializer()) { response in
            left(response.temporaryURL, response.destinationURL, response.resumeData)
            told()
        }
    }

    private func serializer() -> DataResponseSerializer<Int> {
        let (program, number) = (run.program, number)
        return DataResponseSerializer { _, _, data, error in
            program.called(.serializer, of: number)
            if let error { return .failure(error) }
            return .success(data?.count ?? 0)
        }
    }

    private func downloadSerializer() -> DownloadResponseSerializer<Int> {
        let (program, number) = (run.program, number)
        return DownloadResponseSerializer { _, _, _, error in
            program.called(.serializer, of: number)
            if let error { return .failure(error) }
            return .success(1)
        }
    }

    private mutating func wait(for request: Request) {
        // A wait that is resumed twice would end the process.
        guard run.fault != .request(.doublesHandler) else { return }
        let (id, run) = (run.record.expect(), run)
        run.countWait()
        let task = Task {
            if let request = request as? DataRequest { _ = await request.response() }
            if let request = request as? DownloadRequest { _ = await request.responseString() }
            run.record.note(id, of: nil)
        }
        if roll(4) == 0 { task.cancel() }
    }
}

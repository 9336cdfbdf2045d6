internal import Foundation
internal import Glibc

/// A separate process for tests that measure or change what belongs to a whole process: open descriptors, leaked
/// objects, memory use, exit(3) and fork(2).
///
/// The process prints one line per event. The last line is `done …`.
@main
package struct ClientTestProcess {
    package static func main() async {
        do {
            // Limits the lifetime to 300 s, because the parent may exit without ending this process.
            alarm(300)
            switch try ClientProcessOptions(argument: CommandLine.arguments.last ?? "") {
            case .completion(let options): try await CompletionSeries(options).run()
            case .queueCompletion(let options): try await CompletionProcess(options).run()
            case .hostile(let options): try await HostileRun(options).run()
            case .process(let options): try await ProcessRun(options).run()
            }
        } catch {
            say("failed \(error)")
            exit(1)
        }
    }

    static func say(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        write(STDOUT_FILENO, bytes, bytes.count)
    }
}

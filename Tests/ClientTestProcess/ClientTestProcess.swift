internal import Foundation
internal import Glibc

/// A separate process for measurements that are process-wide: open descriptors, leaked objects, memory use.
///
/// It prints one line per event. The last line is `done …`.
@main
package struct ClientTestProcess {
    package static func main() async {
        do {
            // The parent may have exited, so limit the lifetime to 300 s.
            alarm(300)
            switch try ClientProcessOptions(argument: CommandLine.arguments.last ?? "") {
            case .completion(let options): try await CompletionSeries(options).run()
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

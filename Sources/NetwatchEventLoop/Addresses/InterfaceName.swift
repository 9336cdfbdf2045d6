internal import Glibc

/// The limits of the names of network interfaces.
package enum InterfaceName {
    /// The maximum length in bytes: 15, which is `IF_NAMESIZE` (`net/if.h`) without the final NUL.
    package static let maximumBytes = Int(IF_NAMESIZE) - 1
}

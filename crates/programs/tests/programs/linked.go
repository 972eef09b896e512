// With C in it, Go's runtime begins threads by the C library, and is linked to it.
package main

import "C"

// A network between two namespaces: carries the packets of two TUN devices to each other, each packet after the same delay,
// and loses some. It is a process of its own. `tc netem` would do the same in the kernel, but many kernels come without it.
import { dlopen, type Pointer, ptr } from 'bun:ffi'
import { openSync, read, writeSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { carrier } from './network-carrier.ts'

/** linux/if_tun.h: a device for packets of IP, without a header of its own before each. */
const TUNSETIFF = 0x400454ca
const IFF_TUN = 0x0001
const IFF_NO_PI = 0x1000
const IFREQ_BYTES = 40
const FLAGS_AT = 16
const LARGEST_PACKET = 1500

type Ioctl = (file: number, request: number, argument: Pointer) => number

function openDevice(name: string, ioctl: Ioctl): number {
  const file = openSync('/dev/net/tun', 'r+')
  const request = Buffer.alloc(IFREQ_BYTES)
  request.write(name, 'latin1')
  request.writeUInt16LE(IFF_TUN | IFF_NO_PI, FLAGS_AT)
  if (ioctl(file, TUNSETIFF, ptr(request)) !== 0) throw new Error(`The kernel makes no TUN device ${name}`)
  return file
}

/** Reads for ever, one packet at a time. */
function readPackets(file: number, onPacket: (packet: Uint8Array) => void): void {
  const buffer = Buffer.alloc(LARGEST_PACKET)
  read(file, buffer, 0, LARGEST_PACKET, null, (error, length) => {
    if (error !== null) throw error
    readPackets(file, onPacket)
    onPacket(buffer.subarray(0, length))
  })
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const
  const { values, positionals } = parseArgs({ options: { delay: text, loss: text }, allowPositionals: true })
  const { ioctl } = dlopen('libc.so.6', { ioctl: { args: ['int', 'u64', 'ptr'], returns: 'int' } }).symbols
  const [near, far] = positionals.map((name) => openDevice(name, ioctl)) as [number, number]
  console.log('The devices are there')
  // A device that is down cannot be read: a line says that both are up.
  for await (const _line of console) break
  const conditions = { delayMs: Number(values.delay), loss: Number(values.loss) }
  readPackets(
    near,
    carrier(conditions, (packet) => void writeSync(far, packet)),
  )
  readPackets(
    far,
    carrier(conditions, (packet) => void writeSync(near, packet)),
  )
}

await main()

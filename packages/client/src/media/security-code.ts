import { fingerprintOf } from './description.ts'

/** "ringwire-sas-1" names the formula; another one gets another name. */
const formula = 'ringwire-sas-1'
const groups = 12

/**
 * The code that both people compare: 60 digits in twelve groups, made of the fingerprints of both sides [SAS1]. Undefined
 * before both descriptions are in use, and where there is no `crypto.subtle`, as in a page that is not secure. Never
 * rejects.
 */
export async function securityCodeOf({
  currentLocalDescription,
  currentRemoteDescription,
}: Pick<RTCPeerConnection, 'currentLocalDescription' | 'currentRemoteDescription'>): Promise<string | undefined> {
  try {
    // As the browser writes them: what it did not understand is not in them.
    const both = [currentLocalDescription, currentRemoteDescription].map((one) => fingerprintOf(one?.sdp ?? '')).sort()
    if (!both[0]) return
    const text = new TextEncoder().encode([formula, ...both].join('\n'))
    const hash = new DataView(await crypto.subtle.digest('SHA-512', text))
    // Five bytes for five digits: that some digits are more likely than others makes 1 in 10 million.
    const group = (at: number) => (hash.getUint8(at) * 2 ** 32 + hash.getUint32(at + 1)) % 100_000
    return Array.from({ length: groups }, (_, i) => `${group(5 * i)}`.padStart(5, '0')).join(' ')
  } catch {
    return
  }
}

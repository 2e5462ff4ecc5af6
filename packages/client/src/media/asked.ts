import { assertOpen, mediaError } from './devices.ts'
import { MediaError } from './types.ts'

/**
 * Runs a request of the application: its failure is a MediaError, which the application may ignore, as with the promises
 * of a call.
 */
export function createAsked(isClosed: () => boolean) {
  async function whileOpen(work: () => Promise<void>): Promise<void> {
    assertOpen(!isClosed())
    await work()
  }

  return (what: string, work: () => Promise<void>): Promise<void> => {
    const promise = whileOpen(work).catch((error: unknown) => {
      throw mediaError(error, what)
    })
    promise.catch(() => {})
    return promise
  }
}

export async function setOutput(element: HTMLMediaElement, deviceId: string): Promise<void> {
  if (!element.setSinkId) throw new MediaError('NOT_SUPPORTED', 'No setSinkId')
  await element.setSinkId(deviceId)
}

import type { Call } from './calls.ts'
import { byId, paintAvatar } from './dom.ts'

/**
 * The incoming call as a modal dialog: the rest of the page is out of reach, Accept has the focus (Enter), and Escape
 * is what a dialog already has for "no".
 */
export function createIncomingView(onAccept: () => void, onReject: () => void) {
  const dialog = byId('incoming', HTMLDialogElement)
  let shown = false

  byId('accept', HTMLButtonElement).addEventListener('click', onAccept)
  byId('reject', HTMLButtonElement).addEventListener('click', onReject)
  dialog.addEventListener('cancel', (event) => event.preventDefault())
  dialog.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return
    event.preventDefault()
    onReject()
  })
  // A back gesture closes a dialog without a key.
  dialog.addEventListener('close', () => {
    if (shown) onReject()
  })

  return {
    render(call: Call | undefined): void {
      const wanted = call?.phase === 'incoming'
      if (wanted && !shown) {
        paintAvatar(byId('incoming-avatar', HTMLElement), call.peer.display_name)
        byId('incoming-name', HTMLElement).textContent = call.peer.display_name
        byId('incoming-about', HTMLElement).textContent =
          `${call.type === 'video' ? 'Video' : 'Audio'} call · ${call.peer.role}`
        shown = true
        dialog.showModal()
      } else if (!wanted && shown) {
        shown = false
        dialog.close()
      }
    },
  }
}

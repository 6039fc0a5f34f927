"""Pages of faults: overlays, error pages, and a browser's offline page.

All fit into 1280 × 720 pixels. An overlay with ``full`` accessibility is a dialog with a name and a
button with text. With ``none`` it looks the same, but its close control is an icon without role,
name or text, as in many real overlays. The addon replaces ``@ID@`` by the name of the overlay,
``@NONCE@`` by the nonce of its style and script, ``@BEACON@`` by the path that reports its closing,
and ``@URL@`` by the page's address.
"""

from __future__ import annotations

from http import HTTPStatus

from trajudge.proxy.plan import Fault, OfflineFault, PopupFault, StatusFault

_LAYOUTS = {
    "modal": "position:fixed;inset:0;background:rgba(20,24,32,.55)",
    "banner": "position:fixed;left:0;right:0;bottom:0;height:220px;background:rgba(20,24,32,.85)",
    "offscreen": "position:absolute;left:0;top:2400px;width:100%;height:400px;"
    "background:rgba(20,24,32,.55)",
}
_OVERLAY = """<style nonce="@NONCE@">
.@ID@{LAYOUT;z-index:2147483647;display:flex;align-items:center;justify-content:center;
font:16px/1.5 sans-serif}
.@ID@[hidden]{display:none}
.@ID@ .box{position:relative;width:480px;padding:24px 56px 24px 28px;border-radius:8px;
background:#fff;color:#1b1f27}
.@ID@ .title{margin:0 0 8px;font-size:21px;font-weight:600}
.@ID@ .text{margin:0 0 14px}
.@ID@ button{font:inherit;padding:6px 16px;cursor:pointer}
.@ID@ .icon{position:absolute;top:12px;right:12px;width:28px;height:28px;cursor:pointer;
background:linear-gradient(45deg,transparent 46%,#1b1f27 46% 54%,transparent 54%),
linear-gradient(-45deg,transparent 46%,#1b1f27 46% 54%,transparent 54%)}
</style><div class="@ID@"HIDDEN>BOX</div><script nonce="@NONCE@">
(function(){var p=document.querySelector('.@ID@');if(!p)return;
SHOW
p.querySelector('.close').addEventListener('click',function(){p.remove();
try{navigator.sendBeacon('@BEACON@@ID@')}catch(e){}})})();
</script>"""
_TITLE = "Get our weekly offers"
_TEXT = "Leave your address and receive a voucher for your next order."
_BOXES = {
    "full": '<div class="box" role="dialog" aria-modal="true" aria-labelledby="@ID@-title">'
    f'<h2 class="title" id="@ID@-title">{_TITLE}</h2><p class="text">{_TEXT}</p>'
    '<button type="button" class="close">No, thanks</button></div>',
    "none": f'<div class="box"><div class="title">{_TITLE}</div><div class="text">{_TEXT}</div>'
    '<span class="icon close"></span></div>',
}
_STATUS = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><h1>{title}</h1></body></html>
"""
_OFFLINE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>No connection</title>{refresh}</head>
<body><h1>You are offline</h1><p>@URL@ cannot be reached because there is no connection.</p>
<p>{advice}</p></body></html>
"""


def page_of(fault: Fault) -> str:
    """Return the page of a fault, or the part that it inserts into a page; "" for a fault
    without one."""
    if isinstance(fault, PopupFault):
        return _overlay(fault)
    if isinstance(fault, StatusFault) and fault.body == "page":
        return _STATUS.format(title=f"{fault.status} {HTTPStatus(fault.status).phrase}")
    if isinstance(fault, OfflineFault):
        seconds = fault.retry_seconds
        if seconds is None:
            return _OFFLINE.format(refresh="", advice="Check the connection.")
        refresh = f'<meta http-equiv="refresh" content="{seconds}">'
        return _OFFLINE.format(refresh=refresh, advice="Trying to reconnect ...")
    return ""


def _overlay(fault: PopupFault) -> str:
    """Return the elements of an overlay in ASCII, which is valid in every charset that extends
    it."""
    delayed = fault.variant == "delayed"
    shown = f"setTimeout(function(){{p.hidden=false}},{round(fault.seconds * 1000)});"
    return (
        _OVERLAY.replace("LAYOUT", _LAYOUTS["modal" if delayed else fault.variant])
        .replace("HIDDEN", " hidden" if delayed else "")
        .replace("BOX", _BOXES[fault.accessibility])
        .replace("SHOW", shown if delayed else "")
    )

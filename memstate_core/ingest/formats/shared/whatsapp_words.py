"""What WhatsApp writes in place of media that an export leaves out, and of messages that were deleted, by language."""

# ruff: noqa: RUF001 (Turkish has a dotless i)
from __future__ import annotations

import re

_IN_BRACKETS = (
    r"(?:media|\w+) omitted",
    "Medien ausgeschlossen|Medien weggelassen",
    "(?:Multimedia|Archivo|Archivos|Medio|Medios) omitidos?",
    "Mídia oculta|Mídia omitida|Arquivo de mídia oculto|Ficheiro não revelado|Multimédia omitida",
    "Médias omis|Fichier omis|Média omis",
    "Media omess[io]|File omesso",
    "Media weggelaten|Bestand weggelaten",
    "Без медиафайлов|(?:Медиафайл|Файл) пропущен",
    "Medya (?:dahil edilmedi|atlanmış|atlandı)",
    "pominięto multimedia|multimedia pominięte",
    "省略多媒体文件|媒体文件已省略|已省略媒体文件|已忽略多媒體檔|媒體已略去",
    "미디어 파일을 제외한 내용|미디어 파일 제외됨|사진 또는 동영상 생략",
    "メディアは含まれていません|メディアなし",
    "تم استبعاد الوسائط|رسانه حذف شد",
    "Media tidak disertakan",
)
_MEDIA = (
    "(?:image|video|audio|sticker|gif|document|contact card) omitted",
    "(?:Bild|Video|Audio|Sticker|GIF|Dokument|Kontaktkarte) (?:weggelassen|ausgelassen)",
    "(?:imagen|v[ií]deo|audio|sticker|GIF|documento|tarjeta de contacto) omitid[oa]",
    "(?:imagem|v[ií]deo|áudio|figurinha|GIF|documento|cartão d[oe] contato) (?:ocultad|omitid|ocult)[oa]",
    "image absente|vidéo absente|audio omis|sticker omis|GIF retiré|document manquant|fiche contact omise",
    "immagine omessa|video omesso|audio omesso|sticker non incluso|GIF esclusa|documento omesso|scheda contatto omessa",
    "(?:afbeelding|video|audio|sticker|GIF|document|contactkaart) weggelaten",
    "(?:изображение|видео|аудиофайл|стикер|GIF|документ|карточка контакта) (?:отсутствует|пропущено?|пропущена)",
    "(?:görüntü|video|ses|çıkartma|GIF|belge|kişi kartı) dahil edilmedi",
    "(?:obraz|wideo|audio|naklejka|GIF|dokument|karta kontaktu) (?:pominięto|pominięta|pominięty|pominięte)",
    "(?:图像|图片|视频|音频|贴图|GIF|文档|联系人名片)已?(?:忽略|省略)|(?:忽略|省略)(?:图像|图片|视频|音频|贴图|GIF|文档)",
    "(?:사진|동영상|오디오|스티커|GIF|문서|연락처 카드) (?:생략됨|생략|제외됨)",
    "(?:画像|動画|ビデオ|音声|スタンプ|GIF|文書|連絡先カード)(?:は含まれていません|なし)",
)
_DELETED = (
    "this message was deleted|you deleted this message",
    "diese Nachricht wurde gelöscht|du hast diese Nachricht gelöscht",
    "se eliminó este mensaje|este mensaje (?:fue|se|ha sido) elimin(?:ado|ó)|eliminaste este mensaje",
    "(?:esta )?mensagem (?:foi )?(?:apagada|eliminada)|(?:você )?apagou esta mensagem|eliminou esta mensagem",
    "ce message a été (?:supprimé|effacé)|vous avez (?:supprimé|effacé) ce message",
    "questo messaggio è stato eliminato|hai eliminato questo messaggio",
    "dit bericht (?:is|werd) verwijderd|(?:u hebt|je hebt|u heeft) dit bericht verwijderd",
    "(?:данное |это )?сообщение удалено|вы удалили (?:данное|это) сообщение",
    "bu mesaj silindi|bu mesajı sildiniz",
    "ta wiadomość została usunięta|usunięto tę wiadomość",
    "此消息已(?:被)?删除|您删除了此消息|你删除了此消息|此訊息已(?:被)?刪除|你刪除了此訊息|您已刪除此訊息",
    "삭제된 메시지입니다|이 메시지는 삭제되었습니다|내가 삭제한 메시지입니다",
    "このメッセージは削除されました|あなたはこのメッセージを削除しました|このメッセージを削除しました",
    "تم حذف هذه الرسالة|لقد حذفت هذه الرسالة|حذفتَ هذه الرسالة|این پیام حذف شد",
    "pesan ini telah dihapus|anda menghapus pesan ini",
)
NO_WORDS = re.compile(rf"<(?:{'|'.join(_IN_BRACKETS)})>|(?:{'|'.join((*_MEDIA, *_DELETED))})[.。]?|null", re.IGNORECASE)
"""The whole text of a message that says nothing."""
